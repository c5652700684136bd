// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/wish_triggers.h"

#include "lib/api/names.h"
#include "lib/api/workload_kinds.h"
#include "lib/codec/json_value.h"
#include "operator/workloads/loose_pods.h"

namespace cachewarm::observe {
namespace {

// An owner writes its object in several steps.
constexpr Duration kBurst{50};

bool DiffersAt(const kube::Change& change, std::initializer_list<std::string_view> path) {
  if (change.before == nullptr || change.after == nullptr) {
    return true;
  }
  const codec::Json* before = kube::At(*change.before, path);
  const codec::Json* after = kube::At(*change.after, path);
  return before == nullptr || after == nullptr ? before != after : *before != *after;
}

// The CacheWarmup that stands for `pod` and others like it; "" when a workload does, or none may.
std::string LooseWarmup(const kube::Object& pod) {
  const auto loose = pod == nullptr ? std::nullopt : workloads::LoosePodsOf(*pod);
  return loose.has_value() ? loose->warmup : "";
}

WorkloadKey LooseKey(const std::string& ns, const std::string& warmup) {
  return {.kind = std::string(kube::kNamespaces.kind), .name = {.ns = ns, .name = warmup}};
}

}  // namespace

bool AsksToBeWarm(const codec::Json& ns) {
  return kube::TextAt(ns, {"metadata", "labels", api::kWarmAnnotation}) == "true";
}

bool StandsForLoosePods(const codec::Json& warmup) {
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

void WishTriggers::Attach() {
  world_.OnWorkload(
      [this](const kube::Change& change, std::string_view kind) { OnWorkload(change, kind); });
  world_.pods.OnChange([this](const kube::Change& change) { OnPod(change); });
  world_.namespaces.OnChange([this](const kube::Change& change) { OnNamespace(change); });
  world_.warmups.OnChange([this](const kube::Change& change) { OnWarmup(change); });
}

void WishTriggers::AddEverything() {
  AddAll("", Duration(0));
}

void WishTriggers::OnWorkload(const kube::Change& change, std::string_view kind) {
  if (DiffersAt(change, {"metadata", "annotations"}) || DiffersAt(change, {"spec"})) {
    const WorkloadKey key{.kind = std::string(kind), .name = kube::NameOf(change.object())};
    queue_.AddAfter(key.ToString(), kBurst);
  }
}

// A namespace that does not ask yet is asked as a whole when it begins to.
void WishTriggers::OnPod(const kube::Change& change) {
  const std::string before = LooseWarmup(change.before);
  const std::string after = LooseWarmup(change.after);
  const std::string ns = kube::NameOf(change.object()).ns;
  if (before == after || !NamespaceAsks(ns)) {
    return;
  }
  for (const std::string& warmup : {before, after}) {
    if (!warmup.empty()) {
      queue_.AddAfter(LooseKey(ns, warmup).ToString(), kBurst);
    }
  }
}

void WishTriggers::OnNamespace(const kube::Change& change) {
  if (DiffersAt(change, {"metadata", "labels"})) {
    AddAll(kube::NameOf(change.object()).name, kBurst);
  }
}

void WishTriggers::OnWarmup(const kube::Change& change) {
  if (change.after == nullptr) {
    // Whoever wanted this name may have it now.
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
  } else if (StandsForLoosePods(*change.after)) {
    queue_.AddAfter(LooseKey(name.ns, name.name).ToString(), kBurst);
    if (change.before == nullptr) {
      // How long the others of its kind are kept depends on their number.
      AddLoose(name.ns, kBurst);
    }
  }
}

bool WishTriggers::NamespaceAsks(const std::string& ns) const {
  const kube::Object found = world_.namespaces.store().Get({.name = ns});
  return found != nullptr && AsksToBeWarm(*found);
}

void WishTriggers::AddAll(const std::string& ns, Duration delay) {
  for (const api::WorkloadKind& each : api::kWorkloadKinds) {
    const kube::Store* store = world_.WorkloadStore(each.kind);
    if (store == nullptr) {
      continue;
    }
    for (const kube::Kept& object : ns.empty() ? store->List() : store->ListNamespace(ns)) {
      const WorkloadKey key{.kind = std::string(each.kind), .name = object->name()};
      queue_.AddAfter(key.ToString(), delay);
    }
  }
  if (!ns.empty()) {
    AddLoose(ns, delay);
    return;
  }
  for (const kube::Kept& each : world_.namespaces.store().List()) {
    AddLoose(std::string(each->own_name()), delay);
  }
}

void WishTriggers::AddLoose(const std::string& ns, Duration delay) {
  for (const kube::Kept& warmup : world_.warmups.store().ListNamespace(ns)) {
    if (StandsForLoosePods(*warmup->Unpack())) {
      queue_.AddAfter(LooseKey(ns, std::string(warmup->own_name())).ToString(), delay);
    }
  }
  if (!NamespaceAsks(ns)) {
    return;
  }
  for (const kube::Kept& pod : world_.pods.store().ListNamespace(ns)) {
    const std::string warmup = LooseWarmup(pod->Unpack());
    if (!warmup.empty()) {
      queue_.AddAfter(LooseKey(ns, warmup).ToString(), delay);
    }
  }
}

}  // namespace cachewarm::observe
