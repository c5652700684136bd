// SPDX-License-Identifier: Apache-2.0
#include "operator/model/pod_groups.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::model {

namespace {

// The keys of the labels or annotations that contain a group's name and number. `number` is "" for
// kinds that do not number their groups.
struct Mark {
  std::string_view name;
  std::string_view number;
};

constexpr std::array<Mark, 9> kMarks = {{
    {"leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"},
    {"jobset.sigs.k8s.io/jobset-name", ""},
    {"scheduling.x-k8s.io/pod-group", ""},
    {"pod-group.scheduling.sigs.k8s.io", ""},
    {"scheduling.k8s.io/group-name", ""},
    {"volcano.sh/job-name", ""},
    {"pod-group-name", ""},
    {"ray.io/cluster", ""},
    {"kueue.x-k8s.io/pod-group-name", ""},
}};
constexpr std::string_view kKueuePrefix = "kueue.x-k8s.io/";
constexpr std::string_view kKnownPrefixes[] = {kKueuePrefix, "volcano.sh/", "scheduling.x-k8s.io/"};
constexpr std::string_view kGangWords[] = {"gang", "pod-group", "podgroup"};

// Returns the value of the label or annotation `key`; "" if the pod has neither.
std::string_view ValueOf(const api::Pod& pod, std::string_view key) {
  for (const api::Labels* texts : {&pod.meta.labels, &pod.meta.annotations}) {
    const auto found = texts->find(key);
    if (found != texts->end() && !found->second.empty()) {
      return found->second;
    }
  }
  return {};
}

bool IsKnown(std::string_view key) {
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [&](const Mark& mark) { return mark.name == key || mark.number == key; }) ||
         std::any_of(std::begin(kKnownPrefixes), std::end(kKnownPrefixes),
                     [&](std::string_view prefix) { return key.starts_with(prefix); });
}

bool SpeaksOfAGang(const api::Labels& texts) {
  return std::any_of(texts.begin(), texts.end(), [](const auto& text) {
    return !IsKnown(text.first) &&
           std::any_of(std::begin(kGangWords), std::end(kGangWords), [&](std::string_view word) {
             return text.first.find(word) != std::string_view::npos;
           });
  });
}

}  // namespace

api::Pod AsPod(std::shared_ptr<const codec::Json> pod_template) {
  api::Pod pod;
  pod.meta.labels = codec::Texts(codec::At(*pod_template, {"metadata", "labels"}));
  pod.meta.annotations = codec::Texts(codec::At(*pod_template, {"metadata", "annotations"}));
  pod.object = std::move(pod_template);
  return pod;
}

std::string GroupOf(const api::Pod& pod) {
  for (const Mark& mark : kMarks) {
    const std::string_view name = ValueOf(pod, mark.name);
    if (!name.empty()) {
      const std::string_view number =
          mark.number.empty() ? std::string_view() : ValueOf(pod, mark.number);
      return fmt::format("{}={}{}{}", mark.name, name, number.empty() ? "" : "/", number);
    }
  }
  return "";
}

bool IsOfUnknownGang(const api::Pod& pod) {
  if (!GroupOf(pod).empty()) {
    return false;
  }
  const bool by_spec =
      pod.object != nullptr && (codec::At(*pod.object, {"spec", "schedulingGroup"}) != nullptr ||
                                codec::At(*pod.object, {"spec", "workloadRef"}) != nullptr);
  return by_spec || SpeaksOfAGang(pod.meta.labels) || SpeaksOfAGang(pod.meta.annotations);
}

bool HasOtherGate(const api::Pod& pod) {
  return std::any_of(pod.gates.begin(), pod.gates.end(),
                     [](const std::string& gate) { return gate != api::kSchedulingGate; });
}

bool IsOfKueue(const api::Pod& pod) {
  const auto by_kueue = [](const auto& text) { return text.first.starts_with(kKueuePrefix); };
  return std::any_of(pod.meta.labels.begin(), pod.meta.labels.end(), by_kueue) ||
         std::any_of(pod.meta.annotations.begin(), pod.meta.annotations.end(), by_kueue);
}

}  // namespace cachewarm::model
