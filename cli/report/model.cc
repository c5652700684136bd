// SPDX-License-Identifier: Apache-2.0
#include "cli/report/model.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "fmt/format.h"
#include "lib/api/reasons.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"

namespace cachewarm::cli::report {
namespace {

// Returns a value of a status as a number that can be added and drawn. A status is untrusted, and
// 1e12 s are 30,000 years.
double Finite(double value) {
  constexpr double kMax = 1e12;
  return std::isfinite(value) ? std::clamp(value, -kMax, kMax) : 0;
}

// Bounds of counts and of bytes, so that a sum over 100,000 objects does not overflow.
constexpr int64_t kCountMax = int64_t{1} << 40U;
constexpr int64_t kBytesMax = int64_t{1} << 46U;

int64_t BoundedBytes(int64_t bytes) {
  return std::clamp<int64_t>(bytes, 0, kBytesMax);
}

api::StartCounts BoundedCounts(const api::StartCounts& counts) {
  api::StartCounts bounded;
  for (const api::StartResult result : api::kStartResults) {
    api::CountOf(bounded, result) = std::clamp<int64_t>(api::CountOf(counts, result), 0, kCountMax);
  }
  return bounded;
}

// Returns the name of an object that cannot be decoded: "CacheWarmup models/llama".
std::string ObjectName(std::string_view kind, const codec::Json& object) {
  std::string name(kind);
  const auto metadata = object.is_object() ? object.find("metadata") : object.end();
  if (metadata == object.end() || !metadata->is_object()) {
    return name;
  }
  std::string separator = " ";
  for (const char* member : {"namespace", "name"}) {
    const auto text = metadata->find(member);
    if (text != metadata->end() && text->is_string()) {
      name += separator + text->get<std::string>();
      separator = "/";
    }
  }
  return name;
}

// Returns the samples with finite seconds in the reports of engines.
std::vector<api::StartSample> WithFiniteSeconds(std::vector<api::StartSample> samples) {
  for (api::StartSample& sample : samples) {
    if (sample.engine.has_value()) {
      for (double* seconds :
           {&sample.engine->weights_seconds, &sample.engine->compile_seconds,
            &sample.engine->graph_capture_seconds, &sample.engine->init_seconds}) {
        *seconds = Finite(*seconds);
      }
    }
  }
  return samples;
}

WarmupRow RowOf(const api::Starts& starts, std::string name) {
  WarmupRow row{.name = std::move(name),
                .counts = BoundedCounts(starts.counts),
                .cold_median_seconds = Finite(starts.cold_median_seconds),
                .warm_median_seconds = Finite(starts.warm_median_seconds),
                .hold_median_seconds = Finite(starts.hold_median_seconds),
                .saved_seconds = Finite(starts.saved_seconds),
                .lost_seconds = Finite(starts.lost_seconds),
                .counting_started_time = starts.counting_started_time};
  for (const api::GpuTypeStarts& type : starts.gpu_types) {
    row.saved_gpu_seconds += Finite(type.saved_gpu_seconds);
    row.lost_gpu_seconds += Finite(type.lost_gpu_seconds);
    row.builder_gpu_seconds += Finite(type.builder_gpu_seconds);
  }
  for (const api::StartSample& sample : starts.recent) {
    row.recent.push_back({.result = sample.result,
                          .seconds = std::max(0.0, Finite(sample.start_seconds)),
                          .hold_seconds = std::max(0.0, Finite(sample.hold_seconds))});
  }
  row.engines = api::CompareEngineStarts(WithFiniteSeconds(starts.recent));
  return row;
}

// True if the condition needs the attention of a user.
bool IsProblem(const api::Condition& condition) {
  const bool is_wanted = condition.type == "Ready" || condition.type == "Warm";
  if (!is_wanted) {
    return condition.status == "True";
  }
  // A warmup that builds or distributes its bundle is not warm yet, and a paused one is not ready;
  // neither needs anybody.
  return condition.type == "Ready" && condition.status == "False" &&
         condition.reason != api::reason::kPaused;
}

void AddProblems(const std::vector<api::Condition>& conditions, const std::string& object,
                 std::vector<ProblemRow>& to) {
  for (const api::Condition& condition : conditions) {
    if (IsProblem(condition)) {
      to.push_back({.object = object, .reason = condition.reason, .message = condition.message});
    }
  }
}

BundleRow BundleRowOf(const api::BundleStatus& bundle, const std::string& warmup) {
  return {.warmup = warmup,
          .gpu_type = bundle.gpu_type,
          .image = bundle.image,
          .digest = bundle.digest,
          .bytes = BoundedBytes(bundle.bytes),
          .files = bundle.files,
          .nodes_desired = bundle.nodes_desired,
          .nodes_ready = bundle.nodes_ready,
          .nodes_failed = bundle.nodes_failed,
          .published_time = bundle.published_time};
}

// Counts the active bundles of the node among the desired ones of the namespace.
void CountBundles(const api::NodeCache& node, const std::string& ns, NodeRow& row) {
  std::map<std::string, std::set<Digest>> active;
  for (const api::NodeWarmup& warmup : node.status.warmups) {
    for (const api::NodeBundle& bundle : warmup.bundles) {
      if (bundle.state == api::BundleState::kActive) {
        active[warmup.uid].insert(bundle.digest);
      }
    }
  }
  for (const api::WantedWarmup& warmup : node.spec.warmups) {
    if (!ns.empty() && warmup.ns != ns) {
      continue;
    }
    for (const api::WantedBundle& bundle : warmup.bundles) {
      ++row.bundles_desired;
      row.bundles_active += active[warmup.uid].contains(bundle.digest) ? 1 : 0;
    }
  }
}

void AddTotals(const WarmupRow& row, WarmupRow& total) {
  AddCounts(row.counts, total.counts);
  total.saved_seconds += row.saved_seconds;
  total.lost_seconds += row.lost_seconds;
  total.saved_gpu_seconds += row.saved_gpu_seconds;
  total.lost_gpu_seconds += row.lost_gpu_seconds;
  total.builder_gpu_seconds += row.builder_gpu_seconds;
  if (row.counting_started_time != WallTime{} &&
      (total.counting_started_time == WallTime{} ||
       row.counting_started_time < total.counting_started_time)) {
    total.counting_started_time = row.counting_started_time;
  }
}

}  // namespace

int64_t CountedStarts(const api::StartCounts& counts) {
  return counts.cold + counts.hit + counts.partial + counts.miss + counts.inert + counts.hollow;
}

int64_t StartsWithoutUse(const api::StartCounts& counts) {
  return CountedStarts(counts) - counts.hit - counts.partial;
}

void AddCounts(const api::StartCounts& from, api::StartCounts& to) {
  for (const api::StartResult result : api::kStartResults) {
    api::CountOf(to, result) += api::CountOf(from, result);
  }
}

std::string Collector::NameOf(const std::string& ns, const std::string& name) const {
  return ns_.empty() ? ns + "/" + name : name;
}

void Collector::AddUnreadable(std::string_view kind, const codec::Json& object,
                              const absl::Status& reason) {
  unreadable_.push_back({.object = ObjectName(kind, object),
                         .reason = "not readable",
                         .message = std::string(Message(reason))});
}

void Collector::AddWarmup(const codec::Json& object) {
  const auto warmup = api::DecodeCacheWarmup(object);
  if (!warmup.ok()) {
    AddUnreadable("CacheWarmup", object, warmup.status());
    return;
  }
  const std::string name = NameOf(warmup->ns, warmup->name);
  Warmup& entry = warmups_[{warmup->ns, warmup->name}];
  entry = {.row = RowOf(warmup->status.starts, name),
           .gpu_types = warmup->status.starts.gpu_types,
           .bundles = {},
           .problems = {}};
  for (const api::BundleStatus& bundle : warmup->status.bundles) {
    entry.bundles.push_back(BundleRowOf(bundle, name));
  }
  const std::string title = "CacheWarmup " + name;
  AddProblems(warmup->status.conditions, title, entry.problems);
  for (const api::SuspendedBundle& bundle : warmup->status.suspended_bundles) {
    entry.problems.push_back({.object = title,
                              .reason = std::string(api::reason::kBundleSuspended),
                              .message = fmt::format("{} for {}: {}", bundle.digest.Short(),
                                                     bundle.gpu_type, bundle.message)});
  }
}

void Collector::AddNode(const codec::Json& object) {
  const auto node = api::DecodeNodeCache(object);
  if (!node.ok()) {
    AddUnreadable("NodeCache", object, node.status());
    return;
  }
  const api::NodeStatus& status = node->status.node;
  Node& entry = nodes_[node->name];
  entry = {.row = {.name = node->name,
                   .gpu_type = status.gpu_type,
                   .devices = status.devices,
                   .used_bytes = BoundedBytes(status.root.used_bytes),
                   .limit_bytes = BoundedBytes(status.root.limit_bytes),
                   .free_bytes = BoundedBytes(status.root.free_bytes),
                   .heartbeat = node->status.heartbeat},
           .problems = {}};
  CountBundles(*node, ns_, entry.row);
  entry.in_scope =
      ns_.empty() || std::any_of(node->spec.warmups.begin(), node->spec.warmups.end(),
                                 [&](const api::WantedWarmup& warmup) { return warmup.ns == ns_; });
  const std::string title = "Node " + node->name;
  AddProblems(node->status.conditions, title, entry.problems);
  if (!status.root.message.empty()) {
    entry.problems.push_back({.object = title,
                              .reason = std::string(api::reason::kDirectoryUnusable),
                              .message = status.root.message});
  }
}

void Collector::AddGpuTypes(Report& report) const {
  std::map<std::string, GpuTypeRow> types;
  for (const auto& [name, warmup] : warmups_) {
    for (const api::GpuTypeStarts& type : warmup.gpu_types) {
      AddCounts(BoundedCounts(type.counts), types[type.gpu_type].counts);
    }
  }
  std::set<Digest> seen;
  for (const BundleRow& bundle : report.bundles) {
    if (!bundle.digest.empty() && seen.insert(bundle.digest).second) {
      GpuTypeRow& type = types[bundle.gpu_type];
      ++type.bundles;
      type.bundle_bytes += bundle.bytes;
    }
  }
  for (const NodeRow& node : report.nodes) {
    if (!node.gpu_type.empty()) {
      ++types[node.gpu_type].nodes;
      types[node.gpu_type].devices += node.devices;
    }
  }
  for (auto& [name, type] : types) {
    type.gpu_type = name;
    report.gpu_types.push_back(type);
  }
}

Report Collector::Finish(WallTime time, std::string version) const {
  Report report{.ns = ns_,
                .version = std::move(version),
                .time = time,
                .nodes_missing = nodes_missing_,
                .unreadable = unreadable_};
  for (const auto& [name, warmup] : warmups_) {
    AddTotals(warmup.row, report.total);
    report.warmups.push_back(warmup.row);
    report.bundles.insert(report.bundles.end(), warmup.bundles.begin(), warmup.bundles.end());
    report.problems.insert(report.problems.end(), warmup.problems.begin(), warmup.problems.end());
  }
  for (const auto& [name, node] : nodes_) {
    if (node.in_scope) {
      report.nodes.push_back(node.row);
      report.node_bytes += node.row.used_bytes;
      report.problems.insert(report.problems.end(), node.problems.begin(), node.problems.end());
    }
  }
  // The sorts are stable: equal rows stay in the order of their names.
  std::stable_sort(
      report.warmups.begin(), report.warmups.end(),
      [](const WarmupRow& a, const WarmupRow& b) { return a.NetSeconds() > b.NetSeconds(); });
  std::stable_sort(report.bundles.begin(), report.bundles.end(),
                   [](const BundleRow& a, const BundleRow& b) { return a.bytes > b.bytes; });
  std::stable_sort(report.nodes.begin(), report.nodes.end(),
                   [](const NodeRow& a, const NodeRow& b) { return a.used_bytes > b.used_bytes; });
  std::sort(report.unreadable.begin(), report.unreadable.end());
  report.unreadable.erase(std::unique(report.unreadable.begin(), report.unreadable.end()),
                          report.unreadable.end());
  AddGpuTypes(report);
  return report;
}

}  // namespace cachewarm::cli::report
