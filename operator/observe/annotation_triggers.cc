// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/annotation_triggers.h"

#include "lib/api/names.h"
#include "lib/api/workload_kinds.h"
#include "lib/codec/json_value.h"
#include "operator/workloads/standalone_pods.h"

namespace cachewarm::observe {
namespace {

// Delay before a changed object is reconciled. Users and controllers change an object in several
// writes, which then cause only one reconcile.
constexpr Duration kBurst{50};

bool DiffersAt(const kube::Change& change, std::initializer_list<std::string_view> path) {
  if (change.before == nullptr || change.after == nullptr) {
    return true;
  }
  const codec::Json* before = kube::At(*change.before, path);
  const codec::Json* after = kube::At(*change.after, path);
  return before == nullptr || after == nullptr ? before != after : *before != *after;
}

// Returns the CacheWarmup name for the standalone pod `pod`; "" if it is not a standalone pod.
std::string StandaloneWarmup(const kube::Object& pod) {
  const auto standalone = pod == nullptr ? std::nullopt : workloads::StandalonePodsOf(*pod);
  return standalone.has_value() ? standalone->warmup : "";
}

WorkloadKey StandaloneKey(const std::string& ns, const std::string& warmup) {
  return {.kind = std::string(kube::kNamespaces.kind), .name = {.ns = ns, .name = warmup}};
}

}  // namespace

bool IsOptedIn(const codec::Json& ns) {
  return kube::TextAt(ns, {"metadata", "labels", api::kWarmAnnotation}) == "true";
}

bool IsForStandalonePods(const codec::Json& warmup) {
  return kube::ControllerOf(warmup).kind == kube::kNamespaces.kind;
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
  cluster_.pods.OnChange([this](const kube::Change& change) { OnPod(change); });
  cluster_.namespaces.OnChange([this](const kube::Change& change) { OnNamespace(change); });
  cluster_.warmups.OnChange([this](const kube::Change& change) { OnWarmup(change); });
}

void AnnotationTriggers::AddEverything() {
  AddAll("", Duration(0));
}

void AnnotationTriggers::OnWorkload(const kube::Change& change, std::string_view kind) {
  if (DiffersAt(change, {"metadata", "annotations"}) || DiffersAt(change, {"spec"})) {
    const WorkloadKey key{.kind = std::string(kind), .name = kube::NameOf(change.object())};
    queue_.AddAfter(key.ToString(), kBurst);
  }
}

// Ignores pods of a namespace that is not opted in: setting the opt-in label later queues the whole
// namespace.
void AnnotationTriggers::OnPod(const kube::Change& change) {
  const std::string before = StandaloneWarmup(change.before);
  const std::string after = StandaloneWarmup(change.after);
  const std::string ns = kube::NameOf(change.object()).ns;
  if (before == after || !IsNamespaceOptedIn(ns)) {
    return;
  }
  for (const std::string& warmup : {before, after}) {
    if (!warmup.empty()) {
      queue_.AddAfter(StandaloneKey(ns, warmup).ToString(), kBurst);
    }
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
  const kube::Owner owner = kube::ControllerOf(*change.after);
  const kube::ObjectName name = kube::NameOf(*change.after);
  if (api::IsWorkloadKind(owner.api_version, owner.kind)) {
    const WorkloadKey key{.kind = owner.kind, .name = {.ns = name.ns, .name = owner.name}};
    queue_.AddAfter(key.ToString(), kBurst);
  } else if (IsForStandalonePods(*change.after)) {
    queue_.AddAfter(StandaloneKey(name.ns, name.name).ToString(), kBurst);
    if (change.before == nullptr) {
      // Queue all standalone CacheWarmups: their grace period depends on how many there are.
      AddStandalonePods(name.ns, kBurst);
    }
  }
}

bool AnnotationTriggers::IsNamespaceOptedIn(const std::string& ns) const {
  const kube::Object found = cluster_.namespaces.store().Get({.name = ns});
  return found != nullptr && IsOptedIn(*found);
}

void AnnotationTriggers::AddAll(const std::string& ns, Duration delay) {
  for (const api::WorkloadKind& each : api::kWorkloadKinds) {
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
  if (!ns.empty()) {
    AddStandalonePods(ns, delay);
    return;
  }
  for (const kube::CachedObjectPtr& each : cluster_.namespaces.store().List()) {
    AddStandalonePods(std::string(each->own_name()), delay);
  }
}

void AnnotationTriggers::AddStandalonePods(const std::string& ns, Duration delay) {
  for (const kube::CachedObjectPtr& warmup : cluster_.warmups.store().ListNamespace(ns)) {
    if (IsForStandalonePods(*warmup->Unpack())) {
      queue_.AddAfter(StandaloneKey(ns, std::string(warmup->own_name())).ToString(), delay);
    }
  }
  if (!IsNamespaceOptedIn(ns)) {
    return;
  }
  for (const kube::CachedObjectPtr& pod : cluster_.pods.store().ListNamespace(ns)) {
    const std::string warmup = StandaloneWarmup(pod->Unpack());
    if (!warmup.empty()) {
      queue_.AddAfter(StandaloneKey(ns, warmup).ToString(), delay);
    }
  }
}

}  // namespace cachewarm::observe
