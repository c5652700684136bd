// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cli/report/model.h"

namespace cachewarm::cli::report {

// Returns the report as one HTML page, which is also well-formed XML apart from its first line. The
// page loads nothing: its Content-Security-Policy forbids every request and every style except its
// own. The size is bounded: charts and tables show a part of long lists, with the number left out.
std::string RenderPage(const Report& report);

// Returns true if `text` begins like a page of RenderPage(), of any version.
bool IsReportPage(std::string_view text);

}  // namespace cachewarm::cli::report
