// SPDX-License-Identifier: Apache-2.0
#include "fmt/format.h"
#include "lib/api/json/tables.h"

namespace cachewarm::api::json {
namespace {

// Returns a text like "512Mi" or "1.4Gi", because a printer column cannot format a number.
std::string HumanBytes(int64_t bytes) {
  if (bytes < 1024) {
    return fmt::format("{}", bytes);
  }
  double value = static_cast<double>(bytes);
  std::string_view unit;
  for (std::string_view next : {"Ki", "Mi", "Gi", "Ti", "Pi"}) {
    if (value < 1023.5) {
      break;
    }
    value /= 1024;
    unit = next;
  }
  return value < 9.95 ? fmt::format("{:.1f}{}", value, unit) : fmt::format("{:.0f}{}", value, unit);
}

void WriteRootSummary(const Rule& rule, const NodeCacheStatus& status, Writer& out) {
  const RootStatus& root = status.node.root;
  if (root != RootStatus{}) {
    out.Always(rule.name, Writer()
                              .Always("used", HumanBytes(root.used_bytes))
                              .Always("free", HumanBytes(root.free_bytes))
                              .Take());
  }
}

constexpr Field<RootStatus> kRootStatus[] = {
    Optional<&RootStatus::path>("path", {.bytes = 1024}),
    Always<&RootStatus::writable>("writable"),
    Always<&RootStatus::executable>("executable"),
    Optional<&RootStatus::used_bytes>("usedBytes"),
    Optional<&RootStatus::limit_bytes>("limitBytes"),
    Optional<&RootStatus::free_bytes>("freeBytes"),
    Optional<&RootStatus::evictable_bytes>("evictableBytes"),
    Optional<&RootStatus::evicted_bytes>("evictedBytes"),
    Optional<&RootStatus::message>("message", kMessage),
};

constexpr Field<NodeStatus> kNodeStatus[] = {
    Optional<&NodeStatus::gpu_type>("gpuType", kGpuType),
    Optional<&NodeStatus::cpu_class>("cpuClass", kCpuClass),
    Optional<&NodeStatus::devices>("devices", {.max = kDevicesMax}),
    Optional<&NodeStatus::driver>("driver", {.bytes = 128}),
    Optional<&NodeStatus::agent_version>("agentVersion", {.bytes = 128}),
    Optional<&NodeStatus::extends_bundles>("extendsBundles"),
    Optional<&NodeStatus::root, kRootStatus>("root"),
};

constexpr Field<NodeBundle> kNodeBundle[] = {
    Required<&NodeBundle::digest>("digest"),
    Always<&NodeBundle::state, kBundleStateWords>("state"),
    Optional<&NodeBundle::bytes_done>("bytesDone"),
    Optional<&NodeBundle::fetch_seconds>("fetchSeconds"),
    Optional<&NodeBundle::reason>("reason", kReason),
    Optional<&NodeBundle::message>("message", kMessage),
};

constexpr Field<LateCompiles> kLateCompiles[] = {
    Optional<&LateCompiles::report>("report"),
    Optional<&LateCompiles::entries>("entries", {.max = kLateEntriesMax}),
    Optional<&LateCompiles::first_time>("firstTime"),
    Optional<&LateCompiles::last_time>("lastTime"),
};

constexpr Field<Harvestable> kHarvestable[] = {
    Optional<&Harvestable::generation>("generation", kTreeName),
    Optional<&Harvestable::run_as>("runAs", kRunAs),
    Optional<&Harvestable::units>("units", {.max = kLateEntriesMax}),
    Optional<&Harvestable::set>("set", kHash),
    Optional<&Harvestable::message>("message", kMessage),
};

constexpr Field<NodeWarmup> kNodeWarmup[] = {
    Required<&NodeWarmup::uid>("uid", kUid),
    Optional<&NodeWarmup::prepared>("prepared", {.items = kRunAsMax, .bytes = kRunAs.bytes}),
    Optional<&NodeWarmup::generation>("generation", {.bytes = 128}),
    Optional<&NodeWarmup::bundles, kNodeBundle>("bundles", {.items = kNodeBundlesMax}),
    Optional<&NodeWarmup::late_compiles, kLateCompiles>("lateCompiles"),
    Optional<&NodeWarmup::harvestable, kHarvestable>("harvestable"),
    Optional<&NodeWarmup::message>("message", kMessage),
};

constexpr Field<LeftBehind> kLeftBehind[] = {
    Optional<&LeftBehind::files>("files"),
    Optional<&LeftBehind::bytes>("bytes"),
    Optional<&LeftBehind::directories>(
        "directories", {.items = kLeftBehindDirectoriesMax, .bytes = kLeftBehindNameBytes}),
};

constexpr Field<CaptureStatus> kCaptureStatus[] = {
    Required<&CaptureStatus::id>("id", kUid),
    Always<&CaptureStatus::state, kCaptureStateWords>("state"),
    Optional<&CaptureStatus::digest>("digest"),
    Optional<&CaptureStatus::bytes>("bytes"),
    Optional<&CaptureStatus::files>("files"),
    Always<&CaptureStatus::native>("native"),
    Optional<&CaptureStatus::compile_seconds>("compileSeconds"),
    Optional<&CaptureStatus::left_behind, kLeftBehind>("leftBehind"),
    Optional<&CaptureStatus::reason>("reason", kReason),
    Optional<&CaptureStatus::message>("message", kMessage),
};

constexpr Field<StartEvidence> kStartEvidence[] = {
    Required<&StartEvidence::pod_uid>("podUID", kUid),
    Always<&StartEvidence::result, kStartResultWords>("result"),
    Optional<&StartEvidence::opened>("opened"),
    Optional<&StartEvidence::written>("written"),
    Optional<&StartEvidence::native_built>("nativeBuilt"),
    Optional<&StartEvidence::compile_seconds>("compileSeconds"),
    Optional<&StartEvidence::compiled_after_seconds>("compiledAfterSeconds"),
    Optional<&StartEvidence::differing_key_factors>(
        "differingKeyFactors",
        {.items = kDifferingKeyFactorsMax, .bytes = kDifferingKeyFactorBytes}),
};

constexpr Field<NodeCacheStatus> kNodeCacheStatus[] = {
    Optional<&NodeCacheStatus::node, kNodeStatus>("node"),
    Optional<&NodeCacheStatus::conditions, kCondition>("conditions", {.items = kConditionsMax}),
    Custom<NodeCacheStatus>(
        {"summary"}, [](const Rule&, codec::Reader&, NodeCacheStatus&) {}, &WriteRootSummary),
    Optional<&NodeCacheStatus::heartbeat>("heartbeatTime"),
    Optional<&NodeCacheStatus::warmups, kNodeWarmup>("warmups", {.items = kNodeWarmupsMax}),
    Optional<&NodeCacheStatus::captures, kCaptureStatus>("captures", {.items = kCapturesMax}),
    Optional<&NodeCacheStatus::starts, kStartEvidence>("starts", {.items = kStartsMax}),
    Optional<&NodeCacheStatus::evictable, kEvictableTree>("evictable", {.items = kEvictionsMax}),
};

}  // namespace

Rows<NodeCacheStatus> NodeCacheStatusFields() {
  return kNodeCacheStatus;
}

}  // namespace cachewarm::api::json
