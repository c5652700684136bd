// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "operator/plan/plan_context.h"

// The late compiles that nodes report: entries that running pods compiled after they were Ready
// (docs/design/0048-late-compiles.md). Pure.
namespace cachewarm::plan {

// Adds new reports to the totals of `starts`, and their numbers to starts.late_reports, which are
// written in one request. Drops the numbers of reports that the node no longer shows.
void CountLateCompiles(const PlanContext& context, api::Starts& starts);

// Returns the number of the report of `node` in starts.late_reports; 0 if there is none.
int64_t CountedReport(const api::Starts& starts, std::string_view node);

}  // namespace cachewarm::plan
