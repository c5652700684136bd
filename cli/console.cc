// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/cord.h"
#include "fmt/format.h"
#include "lib/codec/json_value.h"

namespace cachewarm::cli {
namespace {

constexpr Duration kBetweenLines{100};
constexpr char kUsagePayload[] = "cachewarm.io/usage";

}  // namespace

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.GetPayload(kUsagePayload).has_value()) {
    return kUsage;
  }
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kOk;
    case absl::StatusCode::kCancelled:
      return kInterrupted;
    case absl::StatusCode::kDataLoss:
      return kDamaged;
    case absl::StatusCode::kNotFound:
      return kNotFound;
    default:
      return kFailed;
  }
}

absl::Status UsageError(const std::string& message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kUsagePayload, absl::Cord());
  return status;
}

std::string Console::Environment(const std::string& name) const {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

Progress::Progress(Console& console, std::string_view what, bool quiet)
    : console_(console),
      what_(what),
      silent_(quiet || !console.err_is_terminal),
      next_(console.clock.Monotonic()) {}

Progress::~Progress() {
  if (drawn_) {
    console_.err << "\r\033[K" << std::flush;
  }
}

void Progress::Show(int64_t done_bytes, int64_t total_bytes) {
  if (silent_) {
    return;
  }
  const MonoTime now = console_.clock.Monotonic();
  if (now < next_) {
    return;
  }
  next_ = now + kBetweenLines;
  drawn_ = true;
  console_.err << fmt::format("\r\033[K{} {} of {}, {} %", what_, FormatBytes(done_bytes),
                              FormatBytes(total_bytes),
                              done_bytes * 100 / std::max<int64_t>(total_bytes, 1))
               << std::flush;
}

std::string FormatBytes(int64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 || value >= 99.95 ? fmt::format("{:.0f} {}", value, kUnits.at(unit))
                                     : fmt::format("{:.1f} {}", value, kUnits.at(unit));
}

void PrintJson(Console& console, const codec::Json& value) {
  console.out << value.dump(2, ' ', false, codec::Json::error_handler_t::replace) << '\n';
}

}  // namespace cachewarm::cli
