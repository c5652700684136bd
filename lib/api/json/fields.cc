// SPDX-License-Identifier: Apache-2.0
#include "lib/api/json/fields.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/api/json/limits.h"

namespace cachewarm::api::json {

using codec::Json;
using codec::Reader;

Shape AnyObject() {
  return {};
}

void ReadValue(const Rule& rule, Reader& reader, std::string& out) {
  const Limit& limit = rule.limit;
  if (limit.pattern == nullptr) {
    reader.Read(rule.name, out, limit.read_bytes != 0 ? limit.read_bytes : limit.bytes);
    return;
  }
  if (rule.presence == FieldPresence::kOptional) {
    if (!reader.Has(rule.name)) {
      return;
    }
    reader.Require(rule.name);
  }
  reader.Read(rule.name, out);
  if (!reader.status().ok()) {
    return;
  }
  if (!limit.pattern(out)) {
    reader.Fail(rule.name, limit.words);
  } else if (out.size() > limit.bytes) {
    reader.Fail(rule.name, fmt::format("longer than {} bytes", limit.bytes));
  }
}

void ReadValue(const Rule& rule, Reader& reader, int& out) {
  const int64_t max = std::min<int64_t>(rule.limit.max, kCountMax);
  reader.Read(rule.name, out, static_cast<int>(rule.limit.min), static_cast<int>(max));
}

void ReadValue(const Rule& rule, Reader& reader, int64_t& out) {
  reader.Read(rule.name, out, rule.limit.min, rule.limit.max);
}

void ReadValue(const Rule& rule, Reader& reader, std::vector<std::string>& out) {
  const Limit& limit = rule.limit;
  const bool is_checked = limit.pattern != nullptr;
  reader.Read(rule.name, out, limit.items, is_checked ? SIZE_MAX : limit.bytes);
  if (is_checked && !std::all_of(out.begin(), out.end(), limit.pattern)) {
    reader.Fail(rule.name, limit.words);
  }
}

void ReadValue(const Rule& rule, Reader& reader, std::map<std::string, std::string>& out) {
  reader.Read(rule.name, out, rule.limit.items, rule.limit.bytes);
}

void WriteValue(const Rule& rule, const std::string& value, Writer& out) {
  if (rule.presence == FieldPresence::kOptional) {
    out.Put(rule.name, value, rule.limit.bytes);
  } else {
    const bool is_cut = rule.presence == FieldPresence::kAlways;
    out.Always(rule.name, is_cut ? Cut(value, rule.limit.bytes) : value);
  }
}

void WriteValue(const Rule& rule, const Digest& value, Writer& out) {
  if (rule.presence == FieldPresence::kOptional) {
    out.Put(rule.name, value);
  } else {
    out.Always(rule.name, value.ToString());
  }
}

void WriteValue(const Rule& rule, const std::vector<std::string>& value, Writer& out) {
  out.Put(rule.name, value, rule.limit.items, rule.limit.bytes);
}

void WriteValue(const Rule& rule, const std::map<std::string, std::string>& value, Writer& out) {
  if (rule.presence == FieldPresence::kOptional) {
    out.Put(rule.name, value);
  } else {
    out.Always(rule.name, value);
  }
}

void WritePart(const Rule& rule, Json value, Writer& out) {
  if (rule.presence == FieldPresence::kOptional) {
    out.PutPart(rule.name, std::move(value));
  } else {
    out.Always(rule.name, std::move(value));
  }
}

}  // namespace cachewarm::api::json
