// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/named_object.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "fmt/format.h"
#include "lib/settings/arguments.h"

namespace cachewarm::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kShortNames = {
    {{"po", "pods"},
     {"deploy", "deployments"},
     {"rs", "replicasets"},
     {"sts", "statefulsets"},
     {"ds", "daemonsets"},
     {"cj", "cronjobs"},
     {"ro", "rollouts"},
     {"lws", "leaderworkersets"},
     {"isvc", "inferenceservices"},
     {"cw", "cachewarmups"},
     {"llmisvc", "llminferenceservices"}}};

std::string AsLowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

absl::StatusOr<NamedObject> ParseNamedObject(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash + 1 == text.size() ||
      text.find('/', slash + 1) != std::string_view::npos) {
    return UsageError(
        fmt::format("\"{}\" is not KIND/NAME, such as deploy/llama", text.substr(0, 128)));
  }
  std::string kind = AsLowerCase(text.substr(0, slash));
  kind = kind.substr(0, kind.find('.'));
  for (const auto& [short_name, plural] : kShortNames) {
    if (kind == short_name) {
      kind = plural;
    }
  }
  std::vector<std::string> plurals;
  for (const kube::Resource& resource : kube::KnownResources()) {
    if (kind == resource.plural || kind == AsLowerCase(resource.kind)) {
      return NamedObject{.resource = resource, .name = std::string(text.substr(slash + 1))};
    }
    plurals.emplace_back(resource.plural);
  }
  return UsageError(fmt::format(
      "unknown kind \"{}\"; {}", kind.substr(0, 64),
      settings::Suggestion(kind, plurals,
                           "expected deploy, sts, job, cronjob, pod, lws or another workload")));
}

}  // namespace cachewarm::cli
