// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/codec/json_fwd.h"
#include "lib/kube/core/object.h"
#include "lib/kube/core/resource.h"

namespace cachewarm::kube {

// One call of the Kubernetes API as plain values; kube::Client sends it. The functions below build
// requests. They do no I/O and never fail, because the server validates.
struct Request {
  std::string verb;          // "list", "apply", ...; for metrics and messages
  std::string resource;      // "pods" or "pods/status"
  std::string method;        // "GET"
  std::string path;          // "/api/v1/namespaces/default/pods/a", percent-encoded
  std::string query;         // without '?', percent-encoded; may be empty
  std::string content_type;  // of `body`
  std::string body;
  bool idempotent = true;         // may be sent again if the response was lost
  size_t response_bytes_max = 0;  // largest accepted response; 0: the limit of the client
};

struct ListOptions {
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  int limit = 500;  // items per page; 0: all at once
  std::string continue_token;
  std::string resource_version;  // "0": any version that the server has cached; empty: the newest
};
Request List(const Resource& resource, const ListOptions& options);

struct WatchOptions {
  std::string ns;
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  int timeout_seconds = 290;  // time after which the server ends the watch
};
// Builds a watch with bookmarks.
Request Watch(const Resource& resource, const WatchOptions& options);

Request Get(const Resource& resource, const ObjectName& name);

struct WriteOptions {
  std::string field_manager = "cachewarm";
  std::string subresource;  // "status", ...
  bool dry_run = false;     // all processing except storing (dryRun=All)
};
// Creates `object` in its namespace (POST). Idempotent if the object has a name, or in a
// dry run; with generateName, each attempt could create one more object.
Request Create(const Resource& resource, const codec::Json& object, const WriteOptions& options);
// Replaces the object (PUT). With a metadata.resourceVersion it fails with ABORTED if the object
// has changed since that version.
Request Update(const Resource& resource, const codec::Json& object, const WriteOptions& options);
// Server-side apply with force: takes ownership of every field in `object` and keeps all other
// fields. Sets apiVersion and kind from `resource`. With a metadata.uid the request changes only
// the object with that uid (INVALID_ARGUMENT if the uid differs, ABORTED if there is no object).
// With a metadata.resourceVersion it changes only that version of the object (ABORTED if the
// version differs).
Request Apply(const Resource& resource, const codec::Json& object, const WriteOptions& options);
// Applies an RFC 6902 patch. A failing "test" operation returns INVALID_ARGUMENT.
Request JsonPatch(const Resource& resource, const ObjectName& name, const codec::Json& operations,
                  const WriteOptions& options);
// Applies an RFC 7386 merge patch.
Request MergePatch(const Resource& resource, const ObjectName& name, const codec::Json& patch,
                   const WriteOptions& options);

struct DeleteOptions {
  std::string uid;               // deletes only the object with this uid (ABORTED otherwise)
  std::string resource_version;  // deletes only this version of the object (ABORTED otherwise)
  std::string propagation = "Background";
  int grace_seconds = -1;  // gracePeriodSeconds; -1: the default of the object
  bool dry_run = false;
};
Request Delete(const Resource& resource, const ObjectName& name, const DeleteOptions& options);

struct LogOptions {
  std::string container;
  int64_t limit_bytes = 0;  // of the response; the log is cut after them
};
// Reads the log of a container from its beginning (the subresource pods/log). The response is text:
// send the request with Client::DoText(). The client does not repeat the request.
Request PodLog(const ObjectName& pod, const LogOptions& options);

// Reads any path by GET, such as "/version".
Request GetPath(std::string path);

}  // namespace cachewarm::kube
