// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/event_series.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

constexpr Duration kPatchInterval = std::chrono::seconds(10);
constexpr size_t kNoteBytesMax = 1024;   // limit of a note in events.k8s.io/v1
constexpr size_t kReasonBytesMax = 128;  // limit of reason, action and reportingInstance
constexpr size_t kNameBytesMax = 200;    // maximum bytes of the object's name in the event's name

// Truncates the text at a character boundary of UTF-8.
std::string Cut(const std::string& text, size_t bytes_max) {
  if (text.size() <= bytes_max) {
    return text;
  }
  size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
    --end;
  }
  return text.substr(0, end);
}

Json Regarding(const Json& object) {
  const ObjectName name = NameOf(object);
  Json regarding = {{"apiVersion", codec::TextAt(object, {"apiVersion"})},
                    {"kind", codec::TextAt(object, {"kind"})},
                    {"name", name.name},
                    {"uid", UidOf(object)}};
  if (!name.ns.empty()) {
    regarding["namespace"] = name.ns;
  }
  return regarding;
}

}  // namespace

EventSeries::AddResult EventSeries::Add(const Event& event, MonoTime now, WallTime wall,
                                        double random) {
  const std::string about = fmt::format("{}\n{}", UidOf(*event.regarding), event.reason);
  const std::string key =
      fmt::format("{}\n{}\n{}\n{}", about, event.is_warning, event.action, event.note);
  const auto known = series_.find(key);
  if (known != series_.end() && now - known->second.touched < options_.series_window) {
    Series& series = known->second;
    ++series.count;
    series.is_unsent = true;
    series.last_seen = wall;
    series.touched = now;
    ages_.splice(ages_.end(), ages_, series.age);
    return {};
  }
  if (!TakeToken(about, now)) {
    return {.create = std::nullopt, .is_dropped = true};
  }
  const ObjectName regarding = NameOf(*event.regarding);
  const auto salt = static_cast<uint64_t>(random * 4294967296.0);
  const ObjectName name{.ns = regarding.ns.empty() ? options_.ns : regarding.ns,
                        .name = fmt::format("{}.{:x}{:08x}", Cut(regarding.name, kNameBytesMax),
                                            wall.time_since_epoch().count(), salt)};
  Remember(key, {.event = name, .last_seen = wall, .touched = now, .sent = now, .age = {}});
  const Json body = {{"metadata", {{"name", name.name}, {"namespace", name.ns}}},
                     {"eventTime", FormatMicroTime(wall)},
                     {"reportingController", options_.controller},
                     {"reportingInstance", Cut(options_.instance, kReasonBytesMax)},
                     {"type", event.is_warning ? "Warning" : "Normal"},
                     {"reason", Cut(event.reason, kReasonBytesMax)},
                     {"action", Cut(event.action, kReasonBytesMax)},
                     {"note", Cut(event.note, kNoteBytesMax)},
                     {"regarding", Regarding(*event.regarding)}};
  return {.create = Create(kEvents, body, {}), .is_dropped = false};
}

std::vector<Request> EventSeries::Due(MonoTime now) {
  std::vector<Request> due;
  for (auto& [key, series] : series_) {
    if (series.is_unsent && now - series.sent >= kPatchInterval) {
      series.is_unsent = false;
      series.sent = now;
      const Json patch = {
          {"series",
           {{"count", series.count}, {"lastObservedTime", FormatMicroTime(series.last_seen)}}}};
      due.push_back(MergePatch(kEvents, series.event, patch, {}));
    }
  }
  return due;
}

std::optional<MonoTime> EventSeries::NextDue() const {
  std::optional<MonoTime> next;
  for (const auto& [key, series] : series_) {
    if (series.is_unsent) {
      const MonoTime due = series.sent + kPatchInterval;
      next = std::min(next.value_or(due), due);
    }
  }
  return next;
}

void EventSeries::Forget(const ObjectName& event) {
  const auto found = std::find_if(series_.begin(), series_.end(),
                                  [&](const auto& entry) { return entry.second.event == event; });
  if (found != series_.end()) {
    ages_.erase(found->second.age);
    series_.erase(found);
  }
}

bool EventSeries::TakeToken(const std::string& key, MonoTime now) {
  if (buckets_.size() >= options_.series_max) {
    // Remove full buckets: a full bucket has the same effect as no bucket.
    std::erase_if(buckets_, [&](const auto& entry) {
      return now - entry.second.filled >= options_.refill * options_.burst;
    });
    if (buckets_.size() >= options_.series_max) {
      buckets_.erase(buckets_.begin());
    }
  }
  const auto [at, added] = buckets_.try_emplace(
      key, Bucket{.tokens = static_cast<double>(options_.burst), .filled = now});
  Bucket& bucket = at->second;
  const double earned = static_cast<double>((now - bucket.filled).count()) /
                        static_cast<double>(std::max<int64_t>(1, options_.refill.count()));
  bucket.tokens = std::min(static_cast<double>(options_.burst), bucket.tokens + earned);
  bucket.filled = now;
  if (bucket.tokens < 1.0) {
    return false;
  }
  bucket.tokens -= 1.0;
  return true;
}

void EventSeries::Remember(const std::string& key, Series series) {
  if (const auto known = series_.find(key); known != series_.end()) {
    ages_.erase(known->second.age);
    series_.erase(known);
  }
  while (!ages_.empty() && series_.size() >= options_.series_max) {
    series_.erase(ages_.front());
    ages_.pop_front();
  }
  series.age = ages_.insert(ages_.end(), key);
  series_.emplace(key, std::move(series));
}

}  // namespace cachewarm::kube
