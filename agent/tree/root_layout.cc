// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/root_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/sync/tree_names.h"

namespace cachewarm::agent {
namespace {

constexpr std::string_view kTargetPrefix = "../../../.gen/";

}  // namespace

std::string MountParent(const Mount& mount) {
  return fmt::format("{}/{}/{}", mount.ns, mount.name, mount.uid);
}

std::string MountPath(const Mount& mount) {
  return fmt::format("{}/{}", MountParent(mount), mount.run_as);
}

std::string LinkTarget(std::string_view generation) {
  return fmt::format("{}{}", kTargetPrefix, generation);
}

std::string TargetGeneration(std::string_view target) {
  if (!target.starts_with(kTargetPrefix)) {
    return {};
  }
  const std::string_view id = target.substr(kTargetPrefix.size());
  return IsGenerationId(id) ? std::string(id) : std::string();
}

std::string GenerationPath(std::string_view id) {
  return fmt::format("{}/{}", kGenerations, id);
}

std::string StagingPath(std::string_view id) {
  return fmt::format("{}/{}", kStaging, id);
}

std::string GenerationRecordPath(std::string_view id) {
  return fmt::format("{}/{}.json", kGenerationRecords, id);
}

std::string EntriesRecordPath(std::string_view id) {
  return fmt::format("{}/{}.entries", kGenerationRecords, id);
}

std::string ScrubRecordPath(std::string_view id) {
  return fmt::format("{}/{}.scrub.json", kGenerationRecords, id);
}

std::string DurableMarkPath(std::string_view id) {
  return fmt::format("{}/{}.durable", kGenerationRecords, id);
}

std::string LinkRecordPath(const Mount& mount) {
  return fmt::format("{}/{}.{}.json", kLinkRecords, mount.uid, mount.run_as);
}

std::pair<std::string, std::string> OwnerOfLinkRecord(std::string_view path) {
  path.remove_prefix(std::min(path.rfind('/') + 1, path.size()));
  const size_t dot = path.find('.');
  const size_t end = path.find(".json");
  if (dot == std::string_view::npos || end == std::string_view::npos || dot >= end) {
    return {};
  }
  return {std::string(path.substr(0, dot)), std::string(path.substr(dot + 1, end - dot - 1))};
}

std::string CaptureRecordPath(std::string_view id) {
  return fmt::format("{}/{}.json", kCaptureRecords, DigestOf(id).hex().substr(0, 32));
}

std::string QuarantinedBundlePath(std::string_view warmup_uid, const Digest& digest) {
  return fmt::format("{}/{}.{}.json", kQuarantineRecords, warmup_uid, digest.hex());
}

std::string DamagedTreePath(std::string_view id) {
  return fmt::format("{}/{}.json", kDamagedRecords, id);
}

std::string DamagedTreeOf(std::string_view path) {
  path.remove_prefix(std::min(path.rfind('/') + 1, path.size()));
  return std::string(path.substr(0, path.find('.')));
}

}  // namespace cachewarm::agent
