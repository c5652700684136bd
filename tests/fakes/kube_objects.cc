// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/kube_objects.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/error.h"
#include "tests/fakes/kube_selector.h"

namespace cachewarm::fakes {
namespace {

using codec::Json;

std::string QueryOf(const KubeRoute& route, const std::string& name) {
  const auto found = route.query.find(name);
  return found == route.query.end() ? std::string() : found->second;
}

int64_t NumberOf(const std::string& text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

absl::Status NotFound(const KubeRoute& route) {
  return KubeError(404, "NotFound",
                   fmt::format("{} \"{}\" not found", route.resource->plural, route.name));
}

absl::Status Conflict(const KubeRoute& route) {
  return KubeError(409, "Conflict",
                   fmt::format("Operation cannot be fulfilled on {} \"{}\": the object has been "
                               "modified; please apply your changes to the latest version",
                               route.resource->plural, route.name));
}

absl::Status Invalid(const KubeRoute& route, const std::string& message) {
  return KubeError(
      422, "Invalid",
      fmt::format("{} \"{}\" is invalid: {}", route.resource->kind, route.name, message));
}

bool HasStatus(const kube::Resource& resource) {
  return resource != kube::kLeases && resource != kube::kEvents &&
         resource != kube::kControllerRevisions;
}

// RFC 1123 subdomain.
bool IsName(const std::string& name) {
  const auto is_end = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 253 && is_end(name.front()) && is_end(name.back()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_end(c) || c == '-' || c == '.'; });
}

// Everything but metadata and status: changes of it increment the generation.
Json SpecOf(const Json& object) {
  Json spec = object;
  spec.erase("metadata");
  spec.erase("status");
  return spec;
}

Json WithoutVersion(Json object) {
  object["metadata"].erase("resourceVersion");
  return object;
}

// A write to the main resource keeps status; a write to status keeps everything else.
Json MergeSubresource(const KubeRoute& route, const Json& live, Json wanted) {
  if (!HasStatus(*route.resource)) {
    return wanted;
  }
  const bool is_status = route.subresource == "status";
  Json merged = is_status ? live : std::move(wanted);
  const Json& status_from = is_status ? wanted : live;
  merged.erase("status");
  if (status_from.contains("status")) {
    merged["status"] = status_from["status"];
  }
  return merged;
}

// A "test" for null passes for an absent member in the API server's library
// (gopkg.in/evanphx/json-patch.v4), but not in nlohmann's.
bool IsAbsentAsTested(const Json& object, const Json& operation) {
  if (operation.at("op") != "test" || !operation.at("value").is_null()) {
    return false;
  }
  const Json::json_pointer path(operation.at("path").get<std::string>());
  const Json::json_pointer parent = path.parent_pointer();
  return object.contains(parent) && object.at(parent).is_object() && !object.contains(path);
}

// Throws as Json::patch() does.
Json Patched(Json object, const Json& operations) {
  for (const Json& operation : operations) {
    if (!IsAbsentAsTested(object, operation)) {
      object.patch_inplace(Json::array({operation}));
    }
  }
  return object;
}

bool IsDryRun(const KubeRoute& route, const Json& body) {
  return QueryOf(route, "dryRun") == "All" || (body.contains("dryRun") && !body["dryRun"].empty());
}

}  // namespace

absl::Status KubeError(int code, std::string reason, std::string message) {
  return kube::ToStatus({.code = code,
                         .reason = std::move(reason),
                         .message = std::move(message),
                         .retry_after = {}});
}

KubeObjects::Key KubeObjects::KeyOf(const kube::Resource& resource, const kube::ObjectName& name) {
  return {fmt::format("{}.{}", resource.plural, resource.group), name};
}

absl::StatusOr<Json> KubeObjects::Get(const KubeRoute& route) const {
  const kube::Object object = Find(*route.resource, {.ns = route.ns, .name = route.name});
  return object == nullptr ? absl::StatusOr<Json>(NotFound(route)) : *object;
}

absl::StatusOr<Json> KubeObjects::List(const KubeRoute& route) const {
  const KubeSelector selector{.labels = QueryOf(route, "labelSelector"),
                              .fields = QueryOf(route, "fieldSelector")};
  const int64_t limit = NumberOf(QueryOf(route, "limit"));
  const std::string token = QueryOf(route, "continue");
  const size_t bar = token.find('|');
  if (!token.empty() && NumberOf(token) < oldest_) {
    return KubeError(410, "Expired", "The provided continue parameter is too old");
  }
  const std::string after = token.empty() ? "" : token.substr(bar + 1);
  Json items = Json::array();
  std::string last;
  bool more = false;
  for (const kube::Object& object : All(*route.resource)) {
    const kube::ObjectName name = kube::NameOf(*object);
    if (!route.ns.empty() && name.ns != route.ns) {
      continue;
    }
    CW_ASSIGN_OR_RETURN(const bool matches, selector.Matches(*object));
    const std::string key = name.ns + "/" + name.name;
    if (!matches || (!after.empty() && key <= after)) {
      continue;
    }
    if (limit > 0 && static_cast<int64_t>(items.size()) == limit) {
      more = true;
      break;
    }
    items.push_back(*object);
    // As in real lists, items have neither apiVersion nor kind.
    items.back().erase("apiVersion");
    items.back().erase("kind");
    last = key;
  }
  Json metadata = {{"resourceVersion", std::to_string(version_)}};
  if (more) {
    metadata["continue"] = fmt::format("{}|{}", version_, last);
  }
  return Json{{"apiVersion", route.resource->ApiVersion()},
              {"kind", std::string(route.resource->kind) + "List"},
              {"metadata", std::move(metadata)},
              {"items", std::move(items)}};
}

absl::StatusOr<Json> KubeObjects::Write(const kube::Request& request, const KubeRoute& route) {
  if (route.resource->namespaced && route.ns.empty()) {
    return KubeError(404, "NotFound", "the server could not find the requested resource");
  }
  if (!route.subresource.empty() &&
      (route.subresource != "status" || !HasStatus(*route.resource))) {
    return KubeError(404, "NotFound", "the server could not find the requested resource");
  }
  if (request.method == "DELETE") {
    return Delete(request, route);
  }
  if (request.method != "POST") {
    return Change(request, route);
  }
  CW_ASSIGN_OR_RETURN(Json object, codec::ParseJson(request.body));
  return Create(request, route, std::move(object));
}

Json KubeObjects::WithIdentity(const KubeRoute& route, Json object) {
  Json& metadata = object["metadata"];
  metadata["uid"] = fmt::format("00000000-0000-4000-8000-{:012}", ++uids_);
  metadata["creationTimestamp"] = FormatTime(clock_.Now());
  metadata["generation"] = 1;
  if (route.resource->namespaced) {
    metadata["namespace"] = route.ns;
  }
  if (HasStatus(*route.resource)) {
    object.erase("status");
  }
  return object;
}

absl::StatusOr<Json> KubeObjects::Create(const kube::Request& request, const KubeRoute& route,
                                         Json object) {
  Json& metadata = object["metadata"];
  const std::string prefix = codec::TextAt(object, {"metadata", "generateName"});
  if (!metadata.contains("name") && !prefix.empty()) {
    metadata["name"] = fmt::format("{}{:05}", prefix, uids_ + 1);
  }
  KubeRoute named = route;
  named.name = kube::NameOf(object).name;
  if (!IsName(named.name)) {
    return Invalid(named, "metadata.name: must be a lowercase RFC 1123 subdomain");
  }
  if (const std::string ns = kube::NameOf(object).ns; !ns.empty() && ns != route.ns) {
    return KubeError(400, "BadRequest", "the namespace of the object does not match the request");
  }
  if (metadata.contains("resourceVersion")) {
    return KubeError(400, "BadRequest",
                     "resourceVersion should not be set on objects to be created");
  }
  if (Find(*route.resource, {.ns = route.ns, .name = named.name}) != nullptr) {
    return KubeError(409, "AlreadyExists",
                     fmt::format("{} \"{}\" already exists", route.resource->plural, named.name));
  }
  FieldOwners owners;
  return Commit(request, named, WithIdentity(route, std::move(object)), std::move(owners));
}

absl::StatusOr<Json> KubeObjects::Change(const kube::Request& request, const KubeRoute& route) {
  CW_ASSIGN_OR_RETURN(const Json body, codec::ParseJson(request.body));
  if (request.content_type == "application/apply-patch+yaml") {
    return Apply(request, route, body);
  }
  const auto found = stored_.find(KeyOf(*route.resource, {.ns = route.ns, .name = route.name}));
  if (found == stored_.end()) {
    return NotFound(route);
  }
  const Json& live = *found->second.object;
  Json wanted = live;
  if (request.method == "PUT") {
    wanted = body;
  } else if (request.content_type == "application/merge-patch+json") {
    wanted.merge_patch(body);
  } else if (request.content_type == "application/json-patch+json") {
    try {
      wanted = Patched(live, body);
    } catch (const Json::exception& error) {
      return KubeError(422, "Invalid",
                       fmt::format("the server rejected our request due to an "
                                   "error in our request: {}",
                                   error.what()));
    }
  } else {
    return KubeError(415, "UnsupportedMediaType", request.content_type + " is not supported");
  }
  const std::string version = kube::ResourceVersionOf(wanted);
  const std::string uid = kube::UidOf(wanted);
  if ((!version.empty() && version != kube::ResourceVersionOf(live)) ||
      (!uid.empty() && uid != kube::UidOf(live))) {
    return Conflict(route);
  }
  return Commit(request, route, MergeSubresource(route, live, std::move(wanted)),
                found->second.owners);
}

absl::StatusOr<Json> KubeObjects::Apply(const kube::Request& request, const KubeRoute& route,
                                        const Json& config) {
  const std::string manager = QueryOf(route, "fieldManager");
  if (manager.empty()) {
    return Invalid(route, "fieldManager: Required value: is required for apply patch");
  }
  if (kube::NameOf(config).name != route.name) {
    return KubeError(400, "BadRequest", "the name of the object does not match the request");
  }
  const auto found = stored_.find(KeyOf(*route.resource, {.ns = route.ns, .name = route.name}));
  const bool exists = found != stored_.end();
  const std::string uid = kube::UidOf(config);
  const std::string version = kube::ResourceVersionOf(config);
  if (!exists && !route.subresource.empty()) {
    return NotFound(route);
  }
  if (!exists && (!uid.empty() || !version.empty())) {
    return Conflict(route);
  }
  if (exists && !uid.empty() && uid != kube::UidOf(*found->second.object)) {
    return Invalid(route, "metadata.uid: Invalid value: field is immutable");
  }
  if (exists && !version.empty() && version != kube::ResourceVersionOf(*found->second.object)) {
    return Conflict(route);
  }
  FieldOwners owners = exists ? found->second.owners : FieldOwners();
  // One manager owns fields per subresource, as in managedFields.
  const std::string owner = route.subresource.empty() ? manager : manager + "/status";
  Json fields = config;
  for (const char* identity : {"uid", "resourceVersion"}) {
    fields["metadata"].erase(identity);
  }
  if (!exists) {
    Json created = WithIdentity(route, fields);
    if (!IsName(route.name)) {
      return Invalid(route, "metadata.name: must be a lowercase RFC 1123 subdomain");
    }
    owners[owner] = FieldsOf(config);
    return Commit(request, route, std::move(created), std::move(owners));
  }
  Json merged = *found->second.object;
  ApplyConfig(owner, fields, merged, owners);
  return Commit(request, route, MergeSubresource(route, *found->second.object, std::move(merged)),
                std::move(owners));
}

absl::StatusOr<Json> KubeObjects::Delete(const kube::Request& request, const KubeRoute& route) {
  const auto found = stored_.find(KeyOf(*route.resource, {.ns = route.ns, .name = route.name}));
  if (found == stored_.end()) {
    return NotFound(route);
  }
  const Json body = request.body.empty() ? Json::object() : *codec::ParseJson(request.body);
  const std::string uid = codec::TextAt(body, {"preconditions", "uid"});
  const std::string version = codec::TextAt(body, {"preconditions", "resourceVersion"});
  const Json& live = *found->second.object;
  if ((!uid.empty() && uid != kube::UidOf(live)) ||
      (!version.empty() && version != kube::ResourceVersionOf(live))) {
    return Conflict(route);
  }
  if (!IsDryRun(route, body)) {
    Remove(*route.resource, {.ns = route.ns, .name = route.name});
  }
  return Json{{"apiVersion", "v1"}, {"kind", "Status"}, {"status", "Success"}};
}

absl::StatusOr<Json> KubeObjects::Commit(const kube::Request& request, const KubeRoute& route,
                                         Json object, FieldOwners owners) {
  const kube::ObjectName name{.ns = route.ns, .name = route.name};
  const kube::Object live = Find(*route.resource, name);
  object["apiVersion"] = route.resource->ApiVersion();
  object["kind"] = route.resource->kind;
  if (live != nullptr) {
    for (const char* fixed :
         {"name", "namespace", "uid", "creationTimestamp", "generation", "resourceVersion"}) {
      if (live->at("metadata").contains(fixed)) {
        object["metadata"][fixed] = live->at("metadata")[fixed];
      }
    }
  }
  if (hook_) {
    CW_RETURN_IF_ERROR(hook_(request, object));
  }
  if (live != nullptr && SpecOf(*live) != SpecOf(object)) {
    object["metadata"]["generation"] = object["metadata"].value("generation", 0) + 1;
  }
  const bool unchanged = live != nullptr && WithoutVersion(*live) == WithoutVersion(object);
  if (IsDryRun(route, Json::object())) {
    return object;
  }
  if (unchanged) {
    stored_[KeyOf(*route.resource, name)].owners = std::move(owners);
    return *live;
  }
  Store(*route.resource, std::move(object), std::move(owners));
  return *Find(*route.resource, name);
}

void KubeObjects::Store(const kube::Resource& resource, Json object, FieldOwners owners) {
  const kube::ObjectName name = kube::NameOf(object);
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  Stored& stored = stored_[KeyOf(resource, name)];
  const kube::Object before = stored.object;
  stored.object = std::make_shared<const Json>(std::move(object));
  stored.owners = std::move(owners);
  history_.push_back({.version = version_,
                      .resource = kube::FindResource(resource.ApiVersion(), resource.kind),
                      .before = before,
                      .after = stored.object});
}

kube::Object KubeObjects::Put(const kube::Resource& resource, Json object) {
  const kube::ObjectName name = kube::NameOf(object);
  const kube::Object live = Find(resource, name);
  object["apiVersion"] = resource.ApiVersion();
  object["kind"] = resource.kind;
  Json& metadata = object["metadata"];
  if (!metadata.contains("uid")) {
    metadata["uid"] = live != nullptr ? kube::UidOf(*live)
                                      : fmt::format("00000000-0000-4000-8000-{:012}", ++uids_);
  }
  if (!metadata.contains("creationTimestamp")) {
    metadata["creationTimestamp"] = live != nullptr ? live->at("metadata")["creationTimestamp"]
                                                    : Json(FormatTime(clock_.Now()));
  }
  const int64_t generation = live != nullptr ? live->at("metadata").value("generation", 1) : 1;
  if (!metadata.contains("generation")) {
    metadata["generation"] = generation;
  }
  if (live != nullptr && SpecOf(*live) != SpecOf(object)) {
    metadata["generation"] = generation + 1;
  }
  FieldOwners owners = live != nullptr ? stored_[KeyOf(resource, name)].owners : FieldOwners();
  Store(resource, std::move(object), std::move(owners));
  return Find(resource, name);
}

void KubeObjects::Remove(const kube::Resource& resource, const kube::ObjectName& name) {
  const auto found = stored_.find(KeyOf(resource, name));
  if (found == stored_.end()) {
    return;
  }
  history_.push_back({.version = ++version_,
                      .resource = kube::FindResource(resource.ApiVersion(), resource.kind),
                      .before = found->second.object,
                      .after = nullptr});
  stored_.erase(found);
}

kube::Object KubeObjects::Find(const kube::Resource& resource, const kube::ObjectName& name) const {
  const auto found = stored_.find(KeyOf(resource, name));
  return found == stored_.end() ? nullptr : found->second.object;
}

std::vector<kube::Object> KubeObjects::All(const kube::Resource& resource) const {
  std::vector<kube::Object> all;
  const std::string kind = KeyOf(resource, {}).first;
  for (auto at = stored_.lower_bound({kind, {}}); at != stored_.end() && at->first.first == kind;
       ++at) {
    all.push_back(at->second.object);
  }
  return all;
}

void KubeObjects::Compact() {
  oldest_ = ++version_;
  history_.clear();
}

}  // namespace cachewarm::fakes
