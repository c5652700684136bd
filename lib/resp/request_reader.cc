// SPDX-License-Identifier: Apache-2.0
#include "lib/resp/request_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::resp {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
// Long enough for a header line: a type, the digits of a 64-bit number and the line end.
constexpr size_t kHeaderBytesMax = 32;

absl::Status ProtocolError(std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("Protocol error: {}", problem));
}

// Parses "<type><digits>\r\n".
std::optional<size_t> HeaderNumber(std::string_view line, char type) {
  if (line.size() < 1 + kLineEnd.size() || line.front() != type) {
    return std::nullopt;
  }
  const std::string_view digits = line.substr(1, line.size() - 1 - kLineEnd.size());
  size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() ? std::optional(number)
                                                                      : std::nullopt;
}

}  // namespace

RequestReader::RequestReader(Reserve reserve, const RequestLimits& limits)
    : reserve_(std::move(reserve)), limits_(limits) {}

absl::StatusOr<size_t> RequestReader::Read(std::string_view bytes) {
  size_t read = 0;
  while (read < bytes.size() && state_ != State::kComplete) {
    const std::string_view rest = bytes.substr(read);
    if (state_ == State::kBytes) {
      read += ReadBytes(rest);
      continue;
    }
    CW_ASSIGN_OR_RETURN(const size_t count, state_ == State::kEnd ? ReadEnd(rest) : ReadLine(rest));
    read += count;
  }
  return read;
}

absl::StatusOr<size_t> RequestReader::ReadLine(std::string_view bytes) {
  const size_t newline = bytes.find('\n');
  const size_t count = newline == std::string_view::npos ? bytes.size() : newline + 1;
  if (line_.size() + count > kHeaderBytesMax) {
    return ProtocolError(state_ == State::kArray ? "expected an array of bulk strings"
                                                 : "expected a bulk string");
  }
  line_.append(bytes.substr(0, count));
  if (newline == std::string_view::npos) {
    return count;
  }
  CW_RETURN_IF_ERROR(state_ == State::kArray ? BeginArray() : BeginBulk());
  line_.clear();
  return count;
}

absl::Status RequestReader::BeginArray() {
  const std::optional<size_t> number =
      line_.ends_with(kLineEnd) ? HeaderNumber(line_, '*') : std::nullopt;
  if (!number.has_value()) {
    return ProtocolError("expected an array of bulk strings");
  }
  if (*number == 0 || *number > limits_.arguments_max) {
    return ProtocolError(
        fmt::format("a request must have 1 to {} arguments", limits_.arguments_max));
  }
  expected_ = *number;
  state_ = State::kBulk;
  return absl::OkStatus();
}

absl::Status RequestReader::BeginBulk() {
  const std::optional<size_t> number =
      line_.ends_with(kLineEnd) ? HeaderNumber(line_, '$') : std::nullopt;
  if (!number.has_value()) {
    return ProtocolError("expected a bulk string");
  }
  if (*number > limits_.argument_bytes_max) {
    return ProtocolError(
        fmt::format("an argument may have at most {} bytes", limits_.argument_bytes_max));
  }
  remaining_ = *number;
  const bool kept = *number <= limits_.small_argument_bytes || reserve_(*number);
  arguments_.push_back({.bytes = {}, .dropped = !kept});
  state_ = remaining_ > 0 ? State::kBytes : State::kEnd;
  return absl::OkStatus();
}

size_t RequestReader::ReadBytes(std::string_view bytes) {
  const std::string_view part = bytes.substr(0, std::min(bytes.size(), remaining_));
  if (Argument& argument = arguments_.back(); !argument.dropped) {
    // Allocate the whole size at once: growing in steps would hold up to three times as much.
    argument.bytes.reserve(argument.bytes.size() + remaining_);
    argument.bytes.append(part);
  }
  remaining_ -= part.size();
  if (remaining_ == 0) {
    state_ = State::kEnd;
  }
  return part.size();
}

absl::StatusOr<size_t> RequestReader::ReadEnd(std::string_view bytes) {
  const std::string_view part =
      bytes.substr(0, std::min(bytes.size(), kLineEnd.size() - line_.size()));
  line_.append(part);
  if (!kLineEnd.starts_with(line_)) {
    return ProtocolError("an argument is longer than its announced size");
  }
  if (line_.size() == kLineEnd.size()) {
    line_.clear();
    state_ = arguments_.size() == expected_ ? State::kComplete : State::kBulk;
  }
  return part.size();
}

std::vector<Argument> RequestReader::Take() {
  state_ = State::kArray;
  return std::exchange(arguments_, {});
}

}  // namespace cachewarm::resp
