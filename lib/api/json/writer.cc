// SPDX-License-Identifier: Apache-2.0
#include "lib/api/json/writer.h"

#include <cmath>

namespace cachewarm::api::json {

using codec::Json;

std::string Cut(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) {
    return std::string(text);
  }
  size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  return std::string(text.substr(0, end));
}

Writer& Writer::Put(std::string_view name, std::string_view text, size_t bytes_max) {
  return text.empty() ? *this : Always(name, Cut(text, bytes_max));
}

Writer& Writer::Put(std::string_view name, int64_t value) {
  return value == 0 ? *this : Always(name, value);
}

Writer& Writer::Put(std::string_view name, double value) {
  // 2^53: a double holds whole numbers below it exactly, so milliseconds must stay below it.
  constexpr double kExact = 9007199254740992.0;
  if (!std::isfinite(value) || std::abs(value) >= kExact / 1000) {
    return *this;
  }
  const auto millis = static_cast<int64_t>(std::llround(value * 1000));
  if (millis % 1000 == 0) {
    return Put(name, millis / 1000);
  }
  return Always(name, static_cast<double>(millis) / 1000);
}

Writer& Writer::Put(std::string_view name, WallTime time) {
  if (time == WallTime{}) {
    return *this;
  }
  const bool whole = time == std::chrono::floor<std::chrono::seconds>(time);
  return Always(name, whole ? FormatTime(time) : FormatMicroTime(time));
}

Writer& Writer::Put(std::string_view name, const Digest& digest) {
  return digest.empty() ? *this : Always(name, digest.ToString());
}

Writer& Writer::Put(std::string_view name, const std::vector<std::string>& items, size_t items_max,
                    size_t bytes_max) {
  return PutPart(name, ListOf(items, items_max, [bytes_max](const std::string& item) {
                   return Json(Cut(item, bytes_max));
                 }));
}

Writer& Writer::Put(std::string_view name, const std::map<std::string, std::string>& items) {
  return PutPart(name, Json(items));
}

Writer& Writer::PutPart(std::string_view name, Json part) {
  return part.empty() ? *this : Always(name, std::move(part));
}

Writer& Writer::Always(std::string_view name, Json value) {
  object_[std::string(name)] = std::move(value);
  return *this;
}

}  // namespace cachewarm::api::json
