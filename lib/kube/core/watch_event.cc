// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/core/watch_event.h"

#include <optional>

#include "fmt/format.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/error.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

std::optional<WatchEventType> TypeOf(const std::string& name) {
  if (name == "ADDED") {
    return WatchEventType::kAdded;
  }
  if (name == "MODIFIED") {
    return WatchEventType::kModified;
  }
  if (name == "DELETED") {
    return WatchEventType::kDeleted;
  }
  if (name == "BOOKMARK") {
    return WatchEventType::kBookmark;
  }
  return std::nullopt;
}

}  // namespace

WatchDecoder::WatchDecoder(WatchEventHandler on_event, size_t line_bytes_max)
    : on_event_(std::move(on_event)), line_bytes_max_(line_bytes_max) {}

absl::Status WatchDecoder::Feed(std::string_view bytes) {
  while (failed_.ok() && !bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (rest_.size() + piece.size() > line_bytes_max_) {
      failed_ = absl::ResourceExhaustedError(
          fmt::format("a watch event is longer than {} bytes", line_bytes_max_));
      break;
    }
    if (end == std::string_view::npos) {
      rest_ += piece;
      break;
    }
    bytes.remove_prefix(end + 1);
    if (rest_.empty()) {
      failed_ = Line(piece);
    } else {
      rest_ += piece;
      failed_ = Line(std::exchange(rest_, std::string()));
    }
  }
  return failed_;
}

absl::Status WatchDecoder::Finish() {
  if (failed_.ok() && !rest_.empty()) {
    failed_ = absl::UnavailableError("the watch ended in the middle of an event");
  }
  return failed_;
}

absl::Status WatchDecoder::Line(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
    return absl::OkStatus();
  }
  absl::StatusOr<Json> parsed =
      codec::ParseJson(line, {.bytes_max = line_bytes_max_, .prune = true});
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("a watch event is malformed: {}", std::string(parsed.status().message())));
  }
  const std::string type_name = codec::TextAt(*parsed, {"type"});
  const auto object = parsed->is_object() ? parsed->find("object") : parsed->end();
  if (object == parsed->end() || !object->is_object()) {
    return absl::InvalidArgumentError("a watch event is malformed: it has no object");
  }
  if (type_name == "ERROR") {
    return ToStatus(ParseApiError(*object, 500));
  }
  const std::optional<WatchEventType> type = TypeOf(type_name);
  if (!type.has_value()) {
    return absl::InvalidArgumentError(
        fmt::format("a watch event has the unknown type \"{}\"", type_name));
  }
  return on_event_({.type = *type, .object = std::make_shared<Json>(std::move(*object))});
}

}  // namespace cachewarm::kube
