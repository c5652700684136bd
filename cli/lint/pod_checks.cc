// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "cli/lint/checks.h"
#include "cli/lint/engine_names.h"
#include "cli/lint/per_pod.h"
#include "fmt/format.h"

namespace cachewarm::lint {
namespace {

// Ends of the directories in which engines keep their caches by default (docs/reference/caches.md).
constexpr std::array<std::string_view, 10> kDefaultDirectories = {
    "/.cache/vllm",      "/.cache/sglang",           "/.cache/flashinfer", "/.triton",
    "/.triton/cache",    "/.cache/torch_extensions", "/.nv/ComputeCache",  "/.cupy/kernel_cache",
    "/.cache/deep_gemm", "/.tilelang/cache"};

// Returns the tag of an image; nullopt for one with a digest. "" without a tag.
std::optional<std::string> TagOf(std::string_view image) {
  if (image.find('@') != std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view last = image.substr(image.rfind('/') + 1);
  const size_t colon = last.find(':');
  return std::string(colon == std::string_view::npos ? "" : last.substr(colon + 1));
}

bool IsMovingTag(std::string_view tag) {
  static constexpr std::array<std::string_view, 5> kMoving = {"", "latest", "nightly", "main",
                                                              "master"};
  return tag.starts_with("latest-") ||
         std::find(kMoving.begin(), kMoving.end(), tag) != kMoving.end();
}

bool IsBelow(std::string_view path, std::string_view directory) {
  while (directory.ends_with('/')) {
    directory.remove_suffix(1);
  }
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

// Returns the mount with the longest path that has `path` below it; nullptr if there is none.
const Mount* MountOf(const Container& container, std::string_view path) {
  const Mount* best = nullptr;
  for (const Mount& mount : container.mounts) {
    if (!mount.path.empty() && IsBelow(path, mount.path) &&
        (best == nullptr || mount.path.size() > best->path.size())) {
      best = &mount;
    }
  }
  return best;
}

bool IsDefaultDirectory(std::string_view path) {
  while (path.ends_with('/')) {
    path.remove_suffix(1);
  }
  return std::any_of(kDefaultDirectories.begin(), kDefaultDirectories.end(),
                     [&](std::string_view end) { return path.ends_with(end); });
}

std::string SecondsOf(double seconds) {
  return fmt::format("{:.0f} s", seconds);
}

}  // namespace

std::vector<Problem> FindUnpinnedImage(const Input& input) {
  std::vector<Problem> problems;
  ForEachEngine(input, [&](const PodTemplate& pod, const Container& container) {
    const std::optional<std::string> tag = TagOf(container.image);
    if (!container.image.empty() && tag.has_value() && IsMovingTag(*tag)) {
      problems.push_back(
          {.pod = &pod,
           .field = fmt::format("{}.image", container.field),
           .message = fmt::format(
               "image \"{}\" has {}: nodes that pulled it at different times "
               "run different engines, whose caches do not fit each other",
               container.image, tag->empty() ? "no tag" : fmt::format("the moving tag {}", *tag))});
    }
  });
  return problems;
}

std::vector<Problem> FindShortProbe(const Input& input) {
  std::vector<Problem> problems;
  ForEachEngine(input, [&](const PodTemplate& pod, const Container& container) {
    const bool has_startup = container.startup_probe.has_value();
    const auto& probe = has_startup ? container.startup_probe : container.liveness_probe;
    const double cold = pod.cold_seconds.value_or(input.assumed_cold_seconds);
    if (probe.has_value() && static_cast<double>(probe->Limit()) < cold) {
      const std::string name = has_startup ? "startupProbe" : "livenessProbe";
      problems.push_back(
          {.pod = &pod,
           .field = fmt::format("{}.{}", container.field, name),
           .message = fmt::format("the {} restarts the container {} s after its start, but a cold "
                                  "start takes {} ({}): "
                                  "a pod without a cache never becomes ready",
                                  name, probe->Limit(), SecondsOf(cold),
                                  pod.cold_seconds.has_value() ? "median of the CacheWarmup"
                                                               : "assumed, none was measured")});
    }
  });
  return problems;
}

std::vector<Problem> FindEmptyDirCache(const Input& input) {
  std::vector<Problem> problems;
  ForEachEngine(input, [&](const PodTemplate& pod, const Container& container) {
    const auto is_empty_dir = [&](const Mount* mount) {
      return mount != nullptr && pod.empty_dirs.contains(mount->volume);
    };
    for (const Variable& variable : container.env) {
      const std::string path = Expanded(container, variable.value);
      if (IsCacheVariable(variable.name) && is_empty_dir(MountOf(container, path))) {
        problems.push_back(
            {.pod = &pod,
             .field = FieldOf(container, "env", variable.name),
             .message = fmt::format("{}={} is on the emptyDir volume \"{}\", which ends with the "
                                    "pod, and cachewarm does not replace the variable",
                                    variable.name, path, MountOf(container, path)->volume)});
      }
    }
    for (const Mount& mount : container.mounts) {
      if (is_empty_dir(&mount) && IsDefaultDirectory(mount.path)) {
        problems.push_back(
            {.pod = &pod,
             .field = FieldOf(container, "volumeMounts", mount.volume),
             .message = fmt::format("{} is the default directory of a compile cache, on the "
                                    "emptyDir volume \"{}\", which ends with the pod",
                                    mount.path, mount.volume)});
      }
    }
  });
  return problems;
}

}  // namespace cachewarm::lint
