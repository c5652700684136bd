// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/annotation_triggers.h"

#include <optional>

#include "lib/api/names.h"
#include "lib/api/workload_kinds.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::observe {
namespace {

// Delay before a changed object is reconciled. Users and controllers change an object in several
// writes, which then cause only one reconcile.
constexpr Duration kBurst{50};

std::string_view ExpiryOf(const kube::CachedObject& warmup) {
  return warmup.value().TextAt({"metadata", "annotations", api::kExpiresAtAnnotation});
}

// Returns the workload for which the CacheWarmup was created: its owner or, if it outlives a Job
// and its namespace is the owner, that Job. Returns nullopt for a CacheWarmup of a user.
std::optional<WorkloadKey> WorkloadOf(const codec::Json& warmup) {
  const kube::Owner owner = kube::ControllerOf(warmup);
  const std::string ns = kube::NameOf(warmup).ns;
  if (api::IsWorkloadKind(owner.api_version, owner.kind)) {
    return WorkloadKey{.kind = owner.kind, .name = {.ns = ns, .name = owner.name}};
  }
  const std::string job = codec::TextAt(warmup, {"spec", "workloadRef", "name"});
  if (owner.kind == "Namespace" && !job.empty() &&
      codec::TextAt(warmup, {"spec", "workloadRef", "kind"}) == "Job") {
    return WorkloadKey{.kind = "Job", .name = {.ns = ns, .name = job}};
  }
  return std::nullopt;
}

bool DiffersAt(const kube::Change& change, codec::JsonPath path) {
  if (change.before == nullptr || change.after == nullptr) {
    return true;
  }
  const codec::Json* before = codec::At(*change.before, path);
  const codec::Json* after = codec::At(*change.after, path);
  return before == nullptr || after == nullptr ? before != after : *before != *after;
}

}  // namespace

bool IsOptedIn(const codec::Json& ns) {
  return codec::TextAt(ns, {"metadata", "labels", api::kWarmAnnotation}) == "true";
}

absl::StatusOr<WorkloadKey> WorkloadKey::Parse(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos || slash == 0) {
    return absl::InvalidArgumentError("expected kind/namespace/name");
  }
  auto name = kube::ObjectName::Parse(key.substr(slash + 1));
  if (!name.ok()) {
    return name.status();
  }
  return WorkloadKey{.kind = std::string(key.substr(0, slash)), .name = *std::move(name)};
}

void AnnotationTriggers::Attach() {
  cluster_.OnWorkload(
      [this](const kube::Change& change, std::string_view kind) { OnWorkload(change, kind); });
  cluster_.namespaces.OnChange([this](const kube::Change& change) { OnNamespace(change); });
  cluster_.warmups.OnChange([this](const kube::Change& change) { OnWarmup(change); });
}

void AnnotationTriggers::AddEverything() {
  AddAll("", Duration(0));
  for (const kube::CachedObjectPtr& object : cluster_.warmups.store().List()) {
    // Its Job may have been deleted while no replica was the leader.
    const auto key = WorkloadOf(*object->Unpack());
    if (key.has_value()) {
      queue_.AddAfter(key->ToString(), Duration(0));
    }
  }
}

void AnnotationTriggers::OnWorkload(const kube::Change& change, std::string_view kind) {
  if (DiffersAt(change, {"metadata", "annotations"}) || DiffersAt(change, {"spec"})) {
    const WorkloadKey key{.kind = std::string(kind), .name = kube::NameOf(change.object())};
    queue_.AddAfter(key.ToString(), kBurst);
  }
}

void AnnotationTriggers::OnNamespace(const kube::Change& change) {
  if (DiffersAt(change, {"metadata", "labels"})) {
    AddAll(kube::NameOf(change.object()).name, kBurst);
  }
}

void AnnotationTriggers::OnWarmup(const kube::Change& change) {
  if (change.after == nullptr) {
    // Another workload may have been waiting for the name of the deleted CacheWarmup.
    AddAll(kube::NameOf(change.object()).ns, kBurst);
    return;
  }
  if (!DiffersAt(change, {"spec"}) && !DiffersAt(change, {"metadata", "annotations"}) &&
      !DiffersAt(change, {"metadata", "ownerReferences"})) {
    return;
  }
  if (const auto key = WorkloadOf(*change.after)) {
    queue_.AddAfter(key->ToString(), kBurst);
  }
  if (codec::At(*change.after, {"metadata", "annotations", api::kExpiresAtAnnotation}) != nullptr) {
    AddRetained(kube::NameOf(*change.after).ns);
  }
}

void AnnotationTriggers::AddRetained(const std::string& ns) {
  for (const kube::CachedObjectPtr& object : cluster_.warmups.store().ListNamespace(ns)) {
    const auto key = ExpiryOf(*object).empty() ? std::nullopt : WorkloadOf(*object->Unpack());
    if (key.has_value()) {
      queue_.AddAfter(key->ToString(), kBurst);
    }
  }
}

void AnnotationTriggers::AddAll(const std::string& ns, Duration delay) {
  for (const api::SupportedKind& each : api::kWorkloadKinds) {
    const kube::Store* store = cluster_.WorkloadStore(each.kind);
    if (store == nullptr) {
      continue;
    }
    for (const kube::CachedObjectPtr& object :
         ns.empty() ? store->List() : store->ListNamespace(ns)) {
      const WorkloadKey key{.kind = std::string(each.kind), .name = object->name()};
      queue_.AddAfter(key.ToString(), delay);
    }
  }
}

}  // namespace cachewarm::observe
