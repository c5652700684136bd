// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/api/cache_warmup.h"
#include "operator/metrics.h"

namespace cachewarm::apply {

// Raises the counters of the warmup `ns`/`name` to the totals in its status, so that a new leader
// and a restarted operator continue the counts. Creates the series of every result for each GPU
// type, also those that are 0. `starts` must be stored in the status already: a total that is
// served but not stored would be counted again by the next leader. Sets the gauges of the KV-cache
// size from the recent starts.
void ServeTotals(const op::Metrics& metrics, const std::string& ns, const std::string& name,
                 const api::Starts& starts);

}  // namespace cachewarm::apply
