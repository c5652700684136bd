// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/wish_triggers.h"

#include "lib/api/workload_kinds.h"
#include "lib/codec/json_value.h"

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

bool IsWorkload(const kube::Owner& owner) {
  for (const api::WorkloadKind& each : api::kWorkloadKinds) {
    if (each.kind == owner.kind && each.api_version == owner.api_version) {
      return true;
    }
  }
  return false;
}

}  // namespace

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
  if (IsWorkload(owner)) {
    const WorkloadKey key{.kind = owner.kind,
                          .name = {.ns = kube::NameOf(*change.after).ns, .name = owner.name}};
    queue_.AddAfter(key.ToString(), kBurst);
  }
}

void WishTriggers::AddAll(const std::string& ns, Duration delay) {
  for (const api::WorkloadKind& each : api::kWorkloadKinds) {
    const kube::Store* store = world_.WorkloadStore(each.kind);
    if (store == nullptr) {
      continue;
    }
    for (const kube::Kept& object : ns.empty() ? store->List() : store->ListNamespace(ns)) {
      const WorkloadKey key{.kind = std::string(each.kind), .name = object->name};
      queue_.AddAfter(key.ToString(), delay);
    }
  }
}

}  // namespace cachewarm::observe
