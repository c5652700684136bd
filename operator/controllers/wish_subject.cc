// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/wish_subject.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/api/workload_kinds.h"
#include "lib/codec/json_value.h"
#include "operator/wishes/name.h"
#include "operator/workloads/accelerators.h"
#include "operator/workloads/loose_pods.h"
#include "operator/workloads/shape.h"

namespace cachewarm::controllers {
namespace {

using codec::Json;

bool IsPartOfAnother(const Json& workload) {
  const kube::Owner owner = kube::ControllerOf(workload);
  return kube::LabelsOf(workload).contains(std::string(api::kBuilderWarmupLabel)) ||
         api::IsWorkloadKind(owner.api_version, owner.kind);
}

bool HasEnded(const Json& job) {
  const Json* conditions = kube::At(job, {"status", "conditions"});
  return kube::TextAt(job, {"kind"}) == "Job" && conditions != nullptr && conditions->is_array() &&
         std::any_of(conditions->begin(), conditions->end(), [](const Json& condition) {
           const std::string type = kube::TextAt(condition, {"type"});
           return (type == "Complete" || type == "Failed") &&
                  kube::TextAt(condition, {"status"}) == "True";
         });
}

// A Rollout may borrow its template.
bool AsksForAccelerator(const observe::World& world, const Json& workload) {
  const std::string from = workloads::ShapeOf(workload).borrows_from;
  if (from.empty()) {
    return workloads::AsksForAccelerator(workload);
  }
  const kube::Object lender =
      world.deployments.store().Get({.ns = kube::NameOf(workload).ns, .name = from});
  return lender != nullptr && workloads::AsksForAccelerator(*lender);
}

std::string ServedBy(const observe::World& world, const wishes::Asked& asked) {
  for (const auto& warmup : world.warmup_views.ListNamespace(asked.ns)) {
    const auto& ref = warmup->spec.workload_ref;
    if (ref.has_value() && ref->kind == asked.kind && ref->name == asked.name &&
        warmup->name != asked.warmup) {
      return warmup->name;
    }
  }
  return "";
}

std::optional<WishSubject> OfWorkload(const observe::World& world,
                                      const observe::WorkloadKey& key) {
  const kube::Store* store = world.WorkloadStore(key.kind);
  const kube::Object workload = store == nullptr ? nullptr : store->Get(key.name);
  if (workload == nullptr) {
    return std::nullopt;
  }
  const kube::Object ns = world.namespaces.store().Get({.name = key.name.ns});
  wishes::Asked asked{.warmup = wishes::WarmupName(key.name.name),
                      .api_version = kube::TextAt(*workload, {"apiVersion"}),
                      .kind = kube::TextAt(*workload, {"kind"}),
                      .ns = key.name.ns,
                      .name = key.name.name,
                      .uid = kube::UidOf(*workload),
                      .annotations = kube::AnnotationsOf(*workload),
                      .namespace_asks = ns != nullptr && observe::AsksToBeWarm(*ns),
                      .is_part = IsPartOfAnother(*workload),
                      .over = kube::IsDeleting(*workload) || HasEnded(*workload) || ns == nullptr ||
                              kube::IsDeleting(*ns)};
  asked.accelerator = asked.namespace_asks && AsksForAccelerator(world, *workload);
  asked.served_by = ServedBy(world, asked);
  return WishSubject{.told = workload, .asked = std::move(asked)};
}

// A CacheWarmup of somebody else that selects `pod`.
std::string SelectedBy(const observe::World& world, const Json& pod, const std::string& own) {
  const auto labels = kube::LabelsOf(pod);
  for (const auto& warmup : world.warmup_views.ListNamespace(kube::NameOf(pod).ns)) {
    const auto& selector = warmup->spec.selector;
    const bool selects = std::all_of(selector.begin(), selector.end(), [&](const auto& label) {
      const auto found = labels.find(label.first);
      return found != labels.end() && found->second == label.second;
    });
    if (!selector.empty() && selects && warmup->name != own) {
      return warmup->name;
    }
  }
  return "";
}

size_t CountLoose(const observe::World& world, const std::string& ns) {
  const auto warmups = world.warmups.store().ListNamespace(ns);
  return static_cast<size_t>(std::count_if(
      warmups.begin(), warmups.end(),
      [](const kube::Kept& warmup) { return observe::StandsForLoosePods(*warmup->Unpack()); }));
}

wishes::Note LeftAlone(std::string text) {
  return {.is_warning = true, .reason = api::reason::kLeftAlone, .text = std::move(text)};
}

std::vector<wishes::Note> WhyNot(const std::string& ns, bool nameless) {
  if (nameless) {
    return {LeftAlone(
        fmt::format("namespace {} asks for it to be warm, but no workload that cachewarm knows "
                    "made it, and nothing tells it from other pods: give it a label, \"app\" for "
                    "one, or leave it out by the annotation {}=false",
                    ns, api::kWarmAnnotation))};
  }
  return {LeftAlone(fmt::format(
      "namespace {} has {} CacheWarmups for pods like it already, most likely because a "
      "label differs with every run: make one by hand whose spec.selector names the "
      "labels that stay, and delete those that nobody needs",
      ns, kLooseMax))};
}

std::optional<WishSubject> OfLoosePods(const observe::World& world,
                                       const kube::ObjectName& warmup) {
  const kube::Object ns = world.namespaces.store().Get({.name = warmup.ns});
  const auto pods = world.pods.store().ByIndex(observe::LooseIndex(warmup));
  const kube::Object present = world.warmups.store().Get(warmup);
  if (ns == nullptr || (pods.empty() && present == nullptr)) {
    return std::nullopt;
  }
  WishSubject subject{.told = pods.empty() ? present : pods.front()->Unpack()};
  const bool asks = observe::AsksToBeWarm(*ns) && !pods.empty();
  const size_t others = CountLoose(world, warmup.ns);
  const bool nameless = warmup.name == workloads::kNameless;
  if (nameless || (present == nullptr && others >= kLooseMax)) {
    subject.problems = asks ? WhyNot(warmup.ns, nameless) : std::vector<wishes::Note>();
    return subject;
  }
  subject.asked = {
      .warmup = warmup.name,
      .api_version = "v1",
      .kind = std::string(kube::kNamespaces.kind),
      .ns = warmup.ns,
      .name = warmup.ns,
      .uid = kube::UidOf(*ns),
      .accelerator = true,
      .namespace_asks = asks,
      .over = kube::IsDeleting(*ns),
      .grace = observe::AsksToBeWarm(*ns) && others <= kLooseMany ? kLooseGrace : wishes::kGrace};
  if (const auto loose = workloads::LoosePodsOf(*subject.told); loose.has_value()) {
    subject.asked.selector = loose->labels;
    subject.asked.served_by = SelectedBy(world, *subject.told, warmup.name);
  }
  return subject;
}

}  // namespace

std::optional<WishSubject> WishSubjectOf(const observe::World& world,
                                         const observe::WorkloadKey& key) {
  return key.kind == kube::kNamespaces.kind ? OfLoosePods(world, key.name) : OfWorkload(world, key);
}

}  // namespace cachewarm::controllers
