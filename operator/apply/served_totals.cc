// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/served_totals.h"

namespace cachewarm::apply {

void ServeTotals(const op::Metrics& metrics, const std::string& ns, const std::string& name,
                 const api::Starts& starts) {
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
    metrics.late_compiles.RaiseTo({ns, name, type.gpu_type},
                                  static_cast<double>(type.late_compiles));
  }
}

}  // namespace cachewarm::apply
