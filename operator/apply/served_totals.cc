// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/served_totals.h"

#include <algorithm>

#include "lib/api/engine_starts.h"
#include "lib/kube/core/object.h"

namespace cachewarm::apply {
namespace {

// Sets the gauge of each result of which an engine reported the size of its KV cache, and removes
// the others.
void ServeKvCacheTokens(const op::Metrics& metrics, const kube::ObjectName& warmup,
                        const api::Starts& starts, const std::string& gpu_type) {
  for (const api::StartResult result : api::kStartResults) {
    const int64_t tokens = api::MedianKvCacheTokens(starts.recent, gpu_type, result);
    const std::string result_name(Name(result));
    if (tokens > 0) {
      metrics.kv_cache_tokens.Set({warmup.ns, warmup.name, gpu_type, result_name},
                                  static_cast<double>(tokens));
    } else {
      metrics.kv_cache_tokens.Remove({{"namespace", warmup.ns},
                                      {"warmup", warmup.name},
                                      {"gpu_type", gpu_type},
                                      {"result", result_name}});
    }
  }
}

}  // namespace

void ServeTotals(const op::Metrics& metrics, const std::string& ns, const std::string& name,
                 const api::Starts& starts) {
  const bool has_reports =
      std::any_of(starts.recent.begin(), starts.recent.end(),
                  [](const api::StartSample& each) { return each.engine.has_value(); });
  for (const api::GpuTypeStarts& type : starts.gpu_types) {
    for (const api::StartResult result : api::kStartResults) {
      metrics.pod_starts.RaiseTo({ns, name, type.gpu_type, std::string(Name(result))},
                                 static_cast<double>(CountOf(type.counts, result)));
    }
    metrics.saved_seconds.RaiseTo({ns, name, type.gpu_type}, type.saved_seconds);
    metrics.lost_seconds.RaiseTo({ns, name, type.gpu_type}, type.lost_seconds);
    metrics.saved_gpu_seconds.RaiseTo({ns, name, type.gpu_type}, type.saved_gpu_seconds);
    metrics.lost_gpu_seconds.RaiseTo({ns, name, type.gpu_type}, type.lost_gpu_seconds);
    metrics.builder_gpu_seconds.RaiseTo({ns, name, type.gpu_type}, type.builder_gpu_seconds);
    if (has_reports) {
      ServeKvCacheTokens(metrics, {.ns = ns, .name = name}, starts, type.gpu_type);
    }
  }
}

}  // namespace cachewarm::apply
