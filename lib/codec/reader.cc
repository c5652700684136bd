// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/reader.h"

#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"

namespace cachewarm::codec {

Reader::Reader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object_.is_object()) {
    status_ = absl::InvalidArgumentError(
        fmt::format("{}: expected an object", path_.empty() ? "document" : path_));
  }
}

std::string Reader::PathOf(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

const Json* Reader::Member(std::string_view name) const {
  if (!object_.is_object()) {
    return nullptr;
  }
  const auto found = object_.find(std::string(name));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool Reader::Has(std::string_view name) const {
  return Member(name) != nullptr;
}

void Reader::Fail(std::string_view name, std::string_view problem) {
  if (status_.ok()) {
    status_ = absl::InvalidArgumentError(fmt::format("{}: {}", PathOf(name), problem));
  }
}

void Reader::Adopt(const Reader& child) {
  if (status_.ok()) {
    status_ = child.status();
  }
}

Reader& Reader::Require(std::string_view name) {
  const Json* member = Member(name);
  if (member == nullptr || (member->is_string() && member->get_ref<const std::string&>().empty())) {
    Fail(name, "is required");
  }
  return *this;
}

Reader& Reader::Only(std::initializer_list<std::string_view> names) {
  if (!object_.is_object()) {
    return *this;
  }
  for (const auto& [name, value] : object_.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      Fail(name, fmt::format("unknown field; expected one of {}", fmt::join(names, ", ")));
    }
  }
  return *this;
}

Reader& Reader::Read(std::string_view name, std::string& out, size_t bytes_max) {
  const Json* member = Member(name);
  if (member == nullptr) {
    return *this;
  }
  if (!member->is_string()) {
    Fail(name, "expected a string");
  } else if (member->get_ref<const std::string&>().size() > bytes_max) {
    Fail(name, fmt::format("longer than {} bytes", bytes_max));
  } else {
    out = member->get<std::string>();
  }
  return *this;
}

Reader& Reader::Read(std::string_view name, bool& out) {
  const Json* member = Member(name);
  if (member == nullptr) {
    return *this;
  }
  if (!member->is_boolean()) {
    Fail(name, "expected true or false");
  } else {
    out = member->get<bool>();
  }
  return *this;
}

Reader& Reader::Read(std::string_view name, int64_t& out, int64_t min, int64_t max) {
  const Json* member = Member(name);
  if (member == nullptr) {
    return *this;
  }
  const bool fits = member->is_number_integer() &&
                    (!member->is_number_unsigned() || member->get<uint64_t>() <= INT64_MAX);
  if (!fits) {
    Fail(name, "expected an integer");
  } else if (const auto value = member->get<int64_t>(); value < min || value > max) {
    Fail(name, fmt::format("{} is not between {} and {}", value, min, max));
  } else {
    out = value;
  }
  return *this;
}

Reader& Reader::Read(std::string_view name, int& out, int min, int max) {
  int64_t value = out;
  Read(name, value, min, max);
  out = static_cast<int>(value);
  return *this;
}

Reader& Reader::Read(std::string_view name, double& out) {
  const Json* member = Member(name);
  if (member == nullptr) {
    return *this;
  }
  if (!member->is_number()) {
    Fail(name, "expected a number");
  } else {
    out = member->get<double>();
  }
  return *this;
}

template <typename T>
Reader& Reader::ReadParsed(std::string_view name, size_t bytes_max,
                           absl::StatusOr<T> (*parse)(std::string_view text), T& out) {
  std::string text;
  Read(name, text, bytes_max);
  if (text.empty()) {
    return *this;
  }
  if (absl::StatusOr<T> value = parse(text); value.ok()) {
    out = *std::move(value);
  } else {
    Fail(name, Message(value.status()));
  }
  return *this;
}

Reader& Reader::ReadMilliseconds(std::string_view name, WallTime& out) {
  int64_t milliseconds = out.time_since_epoch().count();
  Read(name, milliseconds);
  out = WallTime(Duration(milliseconds));
  return *this;
}

Reader& Reader::Read(std::string_view name, WallTime& out) {
  return ReadParsed(name, 64, &ParseTime, out);
}

Reader& Reader::Read(std::string_view name, Digest& out) {
  return ReadParsed(name, 128, &Digest::Parse, out);
}

bool Reader::CheckItem(std::string_view name, const Json& item, std::string_view kind,
                       size_t bytes_max) {
  if (!item.is_string()) {
    Fail(name, fmt::format("expected a {} of strings", kind));
    return false;
  }
  if (item.get_ref<const std::string&>().size() > bytes_max) {
    Fail(name, fmt::format("has a string longer than {} bytes", bytes_max));
    return false;
  }
  return true;
}

Reader& Reader::Read(std::string_view name, std::vector<std::string>& out, size_t items_max,
                     size_t bytes_max) {
  const Json* member = Member(name);
  if (member == nullptr) {
    return *this;
  }
  if (!member->is_array() || member->size() > items_max) {
    Fail(name, fmt::format("expected a list of at most {} strings", items_max));
    return *this;
  }
  out.clear();
  for (const Json& item : *member) {
    if (!CheckItem(name, item, "list", bytes_max)) {
      return *this;
    }
    out.push_back(item.get<std::string>());
  }
  return *this;
}

Reader& Reader::Read(std::string_view name, std::map<std::string, std::string>& out,
                     size_t items_max, size_t bytes_max) {
  const Json* member = Member(name);
  if (member == nullptr) {
    return *this;
  }
  if (!member->is_object() || member->size() > items_max) {
    Fail(name, fmt::format("expected a map of at most {} strings", items_max));
    return *this;
  }
  out.clear();
  for (const auto& [key, value] : member->items()) {
    if (!CheckItem(name, value, "map", bytes_max)) {
      return *this;
    }
    out.emplace(key, value.get<std::string>());
  }
  return *this;
}

Reader& Reader::Object(std::string_view name, const std::function<void(Reader&)>& each) {
  if (const Json* member = Member(name); member != nullptr) {
    Reader child(*member, PathOf(name));
    if (child.status().ok()) {
      each(child);
    }
    Adopt(child);
  }
  return *this;
}

Reader& Reader::List(std::string_view name, size_t items_max,
                     const std::function<void(Reader&)>& each) {
  const Json* member = Member(name);
  if (member == nullptr) {
    return *this;
  }
  if (!member->is_array() || member->size() > items_max) {
    Fail(name, fmt::format("expected a list of at most {} items", items_max));
    return *this;
  }
  for (size_t i = 0; i < member->size() && status_.ok(); ++i) {
    Reader child((*member)[i], fmt::format("{}[{}]", PathOf(name), i));
    if (child.status().ok()) {
      each(child);
    }
    Adopt(child);
  }
  return *this;
}

}  // namespace cachewarm::codec
