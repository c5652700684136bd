// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/eviction/confirm.h"

#include <algorithm>
#include <utility>

#include "lib/api/names.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::plan {

namespace {

// Returns the uid in "<root>/<namespace>/<name>/<uid>/<run-as>"; empty for a shorter path.
std::string UidOfPath(std::string_view path) {
  const size_t run_as = path.rfind('/');
  if (run_as == std::string_view::npos || run_as == 0) {
    return {};
  }
  const size_t uid = path.rfind('/', run_as - 1);
  return uid == std::string_view::npos ? std::string()
                                       : std::string(path.substr(uid + 1, run_as - uid - 1));
}

WallTime EarliestStart(const api::Pod& pod) {
  WallTime earliest = WallTime::max();
  for (const api::ContainerStatus& container : pod.containers) {
    earliest = std::min(earliest, container.started_time);
  }
  return pod.containers.empty() ? WallTime{} : earliest;
}

// True if pod and tree may be of one warmup. An empty uid is unknown.
bool MayBelongTo(const MountingPod& pod, const api::EvictableTree& tree) {
  return pod.warmup_uid.empty() || tree.warmup_uid.empty() || pod.warmup_uid == tree.warmup_uid;
}

// True if the pod may have mounted the tree, to which no link leads any more.
bool MayHaveMounted(const MountingPod& pod, const api::EvictableTree& tree,
                    const std::string& node) {
  return MayBelongTo(pod, tree) && pod.node == node &&
         pod.started_time <= tree.unlinked_time + api::kMountedBefore;
}

bool IsUnused(const EvictionInput& input, const api::EvictableTree& tree) {
  if (tree.unlinked_time != WallTime{}) {
    return std::none_of(input.pods.begin(), input.pods.end(), [&](const MountingPod& pod) {
      return MayHaveMounted(pod, tree, input.node);
    });
  }
  return !tree.warmup_uid.empty() && !input.warmups.contains(tree.warmup_uid) &&
         std::none_of(input.pods.begin(), input.pods.end(), [&](const MountingPod& pod) {
           return MayBelongTo(pod, tree) && (pod.node.empty() || pod.node == input.node);
         });
}

}  // namespace

std::optional<MountingPod> MountingPodOf(const api::Pod& pod) {
  if (api::HasEnded(pod)) {
    return std::nullopt;
  }
  const codec::Json* volume =
      codec::Named(codec::ListAt(*pod.object, {"spec", "volumes"}), api::kVolume);
  const codec::Json* host_path = volume == nullptr ? nullptr : codec::At(*volume, {"hostPath"});
  std::string uid = host_path == nullptr ? "" : UidOfPath(codec::TextAt(*host_path, {"path"}));
  if (uid.empty()) {
    return std::nullopt;
  }
  return MountingPod{
      .warmup_uid = std::move(uid), .node = pod.node, .started_time = EarliestStart(pod)};
}

std::vector<api::EvictableTree> ConfirmEvictions(const EvictionInput& input) {
  std::vector<api::EvictableTree> confirmed;
  for (const api::EvictableTree& tree : input.offered) {
    if (IsUnused(input, tree)) {
      confirmed.push_back(tree);
    }
  }
  std::sort(confirmed.begin(), confirmed.end(),
            [](const auto& a, const auto& b) { return a.generation < b.generation; });
  return confirmed;
}

}  // namespace cachewarm::plan
