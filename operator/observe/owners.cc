// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/owners.h"

#include <string_view>
#include <utility>

#include "lib/api/names.h"
#include "operator/observe/workload.h"
#include "operator/workloads/shape.h"

namespace cachewarm::observe {
namespace {

using Texts = api::Labels::Texts;

bool BorrowsSuchATemplate(const World& world, const codec::Json& workload, const Texts& labels) {
  const std::string lender = workloads::ShapeOf(workload).borrows_from;
  const kube::Kept deployment =
      lender.empty()
          ? nullptr
          : world.deployments.store().Find({.ns = kube::NameOf(workload).ns, .name = lender});
  return deployment != nullptr && workloads::MakesPodsWith(*deployment->Unpack(), labels);
}

bool IsAsked(const kube::KeptObject& workload) {
  return workload.label(api::kBuilderWarmupLabel).empty() && !IsFinished(workload);
}

}  // namespace

std::vector<kube::Object> FindOwners(const World& world, const std::string& ns,
                                     const Texts& labels) {
  std::vector<kube::Object> out;
  for (const std::string_view kind :
       {"Deployment", "Rollout", "StatefulSet", "LeaderWorkerSet", "CronJob", "Job"}) {
    const kube::Store* store = world.WorkloadStore(kind);
    for (const kube::Kept& kept :
         store == nullptr ? std::vector<kube::Kept>() : store->ListNamespace(ns)) {
      if (out.size() == kOwnersMax) {
        return out;
      }
      if (!IsAsked(*kept)) {
        continue;
      }
      kube::Object workload = kept->Unpack();
      if (workloads::MakesPodsWith(*workload, labels) ||
          BorrowsSuchATemplate(world, *workload, labels)) {
        out.push_back(std::move(workload));
      }
    }
  }
  return out;
}

}  // namespace cachewarm::observe
