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

bool BorrowsMatchingTemplate(const ClusterCache& cluster, const codec::Json& workload,
                             const Texts& labels) {
  const std::string lender = workloads::ShapeOf(workload).borrows_from;
  const kube::CachedObjectPtr deployment =
      lender.empty()
          ? nullptr
          : cluster.deployments.store().Find({.ns = kube::NameOf(workload).ns, .name = lender});
  return deployment != nullptr && workloads::MakesPodsWith(*deployment->Unpack(), labels);
}

bool IsCandidate(const kube::CachedObject& workload) {
  return workload.label(api::kBuilderWarmupLabel).empty() && !IsFinished(workload);
}

}  // namespace

std::vector<kube::Object> FindOwners(const ClusterCache& cluster, const std::string& ns,
                                     const Texts& labels) {
  std::vector<kube::Object> out;
  for (const std::string_view kind :
       {"Deployment", "Rollout", "StatefulSet", "LeaderWorkerSet", "CronJob", "Job"}) {
    const kube::Store* store = cluster.WorkloadStore(kind);
    for (const kube::CachedObjectPtr& cached :
         store == nullptr ? std::vector<kube::CachedObjectPtr>() : store->ListNamespace(ns)) {
      if (out.size() == kOwnersMax) {
        return out;
      }
      if (!IsCandidate(*cached)) {
        continue;
      }
      kube::Object workload = cached->Unpack();
      if (workloads::MakesPodsWith(*workload, labels) ||
          BorrowsMatchingTemplate(cluster, *workload, labels)) {
        out.push_back(std::move(workload));
      }
    }
  }
  return out;
}

}  // namespace cachewarm::observe
