// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/codec/json_fwd.h"
#include "lib/kube/core/object.h"
#include "lib/kube/core/resource.h"

namespace cachewarm::kube {

// One call of the Kubernetes API as plain values: built here, sent by kube::Client. The builders do
// no I/O and never fail; what the server will not have, it says.
struct Request {
  std::string verb;          // "list", "apply", ...: for metrics and messages
  std::string resource;      // "pods" or "pods/status"
  std::string method;        // "GET"
  std::string path;          // "/api/v1/namespaces/default/pods/a", percent-encoded
  std::string query;         // without '?', percent-encoded; may be empty
  std::string content_type;  // of `body`
  std::string body;
  bool idempotent = true;  // may be sent again when the answer was lost
};

struct ListOptions {
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  int limit = 500;  // items a page; 0: all at once
  std::string continue_token;
  std::string resource_version;  // "0": whatever the server has cached
};
Request List(const Resource& resource, const ListOptions& options);

struct WatchOptions {
  std::string ns;
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  int timeout_seconds = 290;  // after which the server ends the watch
};
// With bookmarks.
Request Watch(const Resource& resource, const WatchOptions& options);

Request Get(const Resource& resource, const ObjectName& name);

struct WriteOptions {
  std::string field_manager = "cachewarm";
  std::string subresource;  // "status", ...
  bool dry_run = false;     // everything but the storing (dryRun=All)
};
// POST into the namespace of `object`. Not idempotent unless the object has a fixed name.
Request Create(const Resource& resource, const codec::Json& object, const WriteOptions& options);
// PUT; a metadata.resourceVersion in `object` makes it conditional (ABORTED when it moved on).
Request Update(const Resource& resource, const codec::Json& object, const WriteOptions& options);
// Server-side apply with force: we own every field that `object` names, the others stay.
// apiVersion and kind are filled in from `resource`, name and namespace are those of `object`. With
// a metadata.uid in it: only to that object (INVALID_ARGUMENT when it is another one, ABORTED when
// there is none); with a metadata.resourceVersion: only from that version (ABORTED).
Request Apply(const Resource& resource, const codec::Json& object, const WriteOptions& options);
// RFC 6902. A failing "test" operation answers INVALID_ARGUMENT.
Request JsonPatch(const Resource& resource, const ObjectName& name, const codec::Json& operations,
                  const WriteOptions& options);
// RFC 7386.
Request MergePatch(const Resource& resource, const ObjectName& name, const codec::Json& patch,
                   const WriteOptions& options);

struct DeleteOptions {
  std::string uid;  // only if the object still has it (ABORTED otherwise)
  std::string resource_version;
  std::string propagation = "Background";
  int grace_seconds = -1;  // -1: the object's own
  bool dry_run = false;
};
Request Delete(const Resource& resource, const ObjectName& name, const DeleteOptions& options);

// Anything else that is read by GET, such as "/version".
Request GetPath(std::string path);

}  // namespace cachewarm::kube
