// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "lib/api/names.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace {

constexpr size_t kRemembered = 16;  // maximum number of crashes in entry.renewed_for
// Limits the copies of the cache directory per pod: a workload that crashes for its own reasons
// must not fill the disk.
constexpr int kRenewalsPerPod = 2;

bool CrashedBeforeReady(const Context& context, const PodView& pod) {
  return pod.injected && pod.container != nullptr && TerminationCount(*pod.container) > 0 &&
         !WasReady(context, pod);
}

bool IsAbout(const std::string& memory, const std::string& uid) {
  return memory.starts_with(uid + ":");
}

// Removes the crashes of deleted pods from entry.renewed_for.
void Forget(const Context& context, std::vector<std::string>& memory) {
  std::erase_if(memory, [&](const std::string& each) {
    return FindPod(context, each.substr(0, each.rfind(':'))) == nullptr;
  });
}

}  // namespace

void RenewTree(const Context& context, size_t node, api::WantedWarmup& entry) {
  Forget(context, entry.renewed_for);
  for (const PodView& pod : context.pods) {
    if (pod.node != static_cast<int>(node) || !CrashedBeforeReady(context, pod)) {
      continue;
    }
    auto& memory = entry.renewed_for;
    const std::string& uid = pod.pod->meta.uid;
    const std::string crash = fmt::format("{}:{}", uid, TerminationCount(*pod.container));
    const auto before = std::count_if(memory.begin(), memory.end(),
                                      [&](const auto& each) { return IsAbout(each, uid); });
    const bool known = std::find(memory.begin(), memory.end(), crash) != memory.end();
    if (known || before >= kRenewalsPerPod || memory.size() >= kRemembered) {
      continue;
    }
    memory.push_back(crash);
    ++entry.renew;
  }
}

}  // namespace cachewarm::plan
