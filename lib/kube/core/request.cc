// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/core/request.h"

#include "fmt/format.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/http/text/percent.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

constexpr char kJsonType[] = "application/json";

std::string CollectionPath(const Resource& resource, const std::string& ns) {
  std::string path = resource.group.empty()
                         ? fmt::format("/api/{}", resource.version)
                         : fmt::format("/apis/{}/{}", resource.group, resource.version);
  if (resource.namespaced && !ns.empty()) {
    path += "/namespaces/" + http::PercentEncode(ns);
  }
  return path + "/" + std::string(resource.plural);
}

std::string ObjectPath(const Resource& resource, const ObjectName& name,
                       const std::string& subresource = "") {
  std::string path = CollectionPath(resource, name.ns) + "/" + http::PercentEncode(name.name);
  return subresource.empty() ? path : path + "/" + subresource;
}

// Builds "a=1&b=2"; leaves out pairs whose value is empty.
class Query {
 public:
  Query& Add(std::string_view name, std::string_view value) {
    if (!value.empty()) {
      text_ += fmt::format("{}{}={}", text_.empty() ? "" : "&", name, http::PercentEncode(value));
    }
    return *this;
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string WriteQuery(const WriteOptions& options, bool force) {
  return Query()
      .Add("fieldManager", options.field_manager)
      .Add("force", force ? "true" : "")
      .Add("dryRun", options.dry_run ? "All" : "")
      .Take();
}

std::string Label(const Resource& resource, const std::string& subresource) {
  return subresource.empty() ? std::string(resource.plural)
                             : fmt::format("{}/{}", resource.plural, subresource);
}

struct Patch {
  std::string verb;
  std::string content_type;
  const Json& body;
  bool force = false;
  bool idempotent = true;
};

Request PatchRequest(const Resource& resource, const ObjectName& name, const Patch& patch,
                     const WriteOptions& options) {
  return {.verb = patch.verb,
          .resource = Label(resource, options.subresource),
          .method = "PATCH",
          .path = ObjectPath(resource, name, options.subresource),
          .query = WriteQuery(options, patch.force),
          .content_type = patch.content_type,
          .body = codec::DumpJson(patch.body),
          .idempotent = patch.idempotent};
}

Json Typed(const Resource& resource, const Json& object) {
  Json typed = object;
  typed["apiVersion"] = resource.ApiVersion();
  typed["kind"] = resource.kind;
  return typed;
}

}  // namespace

Request List(const Resource& resource, const ListOptions& options) {
  // A continue token contains a resource version. The server rejects a request that has a token and
  // the parameter resourceVersion.
  const bool first = options.continue_token.empty();
  return {.verb = "list",
          .resource = std::string(resource.plural),
          .method = "GET",
          .path = CollectionPath(resource, options.ns),
          .query = Query()
                       .Add("labelSelector", options.label_selector)
                       .Add("fieldSelector", options.field_selector)
                       .Add("limit", options.limit > 0 ? std::to_string(options.limit) : "")
                       .Add("continue", options.continue_token)
                       .Add("resourceVersion", first ? options.resource_version : "")
                       .Take(),
          .content_type = {},
          .body = {}};
}

Request Watch(const Resource& resource, const WatchOptions& options) {
  return {.verb = "watch",
          .resource = std::string(resource.plural),
          .method = "GET",
          .path = CollectionPath(resource, options.ns),
          .query = Query()
                       .Add("watch", "true")
                       .Add("allowWatchBookmarks", "true")
                       .Add("labelSelector", options.label_selector)
                       .Add("fieldSelector", options.field_selector)
                       .Add("resourceVersion", options.resource_version)
                       .Add("timeoutSeconds", std::to_string(options.timeout_seconds))
                       .Take(),
          .content_type = {},
          .body = {}};
}

Request Get(const Resource& resource, const ObjectName& name) {
  return {.verb = "get",
          .resource = std::string(resource.plural),
          .method = "GET",
          .path = ObjectPath(resource, name),
          .query = {},
          .content_type = {},
          .body = {}};
}

Request Create(const Resource& resource, const Json& object, const WriteOptions& options) {
  const ObjectName name = NameOf(object);
  std::string path = options.subresource.empty() ? CollectionPath(resource, name.ns)
                                                 : ObjectPath(resource, name, options.subresource);
  return {.verb = "create",
          .resource = Label(resource, options.subresource),
          .method = "POST",
          .path = std::move(path),
          .query = WriteQuery(options, false),
          .content_type = kJsonType,
          .body = codec::DumpJson(Typed(resource, object)),
          .idempotent = !name.name.empty() || options.dry_run};
}

Request Update(const Resource& resource, const Json& object, const WriteOptions& options) {
  return {.verb = "update",
          .resource = Label(resource, options.subresource),
          .method = "PUT",
          .path = ObjectPath(resource, NameOf(object), options.subresource),
          .query = WriteQuery(options, false),
          .content_type = kJsonType,
          .body = codec::DumpJson(Typed(resource, object)),
          .idempotent = true};
}

Request Apply(const Resource& resource, const Json& object, const WriteOptions& options) {
  const Json typed = Typed(resource, object);
  return PatchRequest(resource, NameOf(object),
                      {.verb = "apply",
                       .content_type = "application/apply-patch+yaml",
                       .body = typed,
                       .force = true},
                      options);
}

Request JsonPatch(const Resource& resource, const ObjectName& name, const Json& operations,
                  const WriteOptions& options) {
  // Not idempotent: a patch that tests what it removes fails when it is sent twice, and the error
  // does not show whether the first one succeeded. The caller must read the object again.
  return PatchRequest(resource, name,
                      {.verb = "patch",
                       .content_type = "application/json-patch+json",
                       .body = operations,
                       .idempotent = false},
                      options);
}

Request MergePatch(const Resource& resource, const ObjectName& name, const Json& patch,
                   const WriteOptions& options) {
  return PatchRequest(
      resource, name,
      {.verb = "patch", .content_type = "application/merge-patch+json", .body = patch}, options);
}

Request Delete(const Resource& resource, const ObjectName& name, const DeleteOptions& options) {
  Json body = {
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", options.propagation}};
  if (!options.uid.empty()) {
    body["preconditions"]["uid"] = options.uid;
  }
  if (!options.resource_version.empty()) {
    body["preconditions"]["resourceVersion"] = options.resource_version;
  }
  if (options.grace_seconds >= 0) {
    body["gracePeriodSeconds"] = options.grace_seconds;
  }
  if (options.dry_run) {
    body["dryRun"] = Json::array({"All"});
  }
  return {.verb = "delete",
          .resource = std::string(resource.plural),
          .method = "DELETE",
          .path = ObjectPath(resource, name),
          .query = {},
          .content_type = kJsonType,
          .body = codec::DumpJson(body),
          .idempotent = true};
}

Request PodLog(const ObjectName& pod, const LogOptions& options) {
  return {.verb = "get",
          .resource = Label(kPods, "log"),
          .method = "GET",
          .path = ObjectPath(kPods, pod, "log"),
          .query = Query()
                       .Add("container", options.container)
                       .Add("limitBytes", std::to_string(options.limit_bytes))
                       .Take(),
          .content_type = {},
          .body = {},
          .idempotent = false,
          .response_bytes_max = static_cast<size_t>(options.limit_bytes)};
}

Request GetPath(std::string path) {
  return {.verb = "get",
          .resource = "path",
          .method = "GET",
          .path = std::move(path),
          .query = {},
          .content_type = {},
          .body = {}};
}

}  // namespace cachewarm::kube
