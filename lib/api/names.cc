// SPDX-License-Identifier: Apache-2.0
#include "lib/api/names.h"

#include "fmt/format.h"
#include "lib/api/json/checks.h"

namespace cachewarm::api {

std::string WarmupManager(std::string_view warmup_uid) {
  return fmt::format("cw-{}", warmup_uid);
}

std::string_view WarmupNameIn(std::string_view value) {
  return json::IsDnsSubdomain(value) ? value : "";
}

std::string RunAsName(std::optional<int64_t> run_as_user) {
  return run_as_user.has_value() ? fmt::format("u{}", *run_as_user) : "image";
}

std::string CachePath(std::string_view ns, std::string_view name, std::string_view uid,
                      std::string_view run_as) {
  return fmt::format("{}/{}/{}/{}", ns, name, uid, run_as);
}

std::string RevisionOf(const Labels& labels) {
  for (const std::string_view label : kRevisionLabels) {
    if (const auto found = labels.find(label); found != labels.end()) {
      return std::string(found->second);
    }
  }
  return "none";
}

}  // namespace cachewarm::api
