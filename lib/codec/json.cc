// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/json.h"

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json_items.h"
#include "lib/codec/json_value.h"

namespace cachewarm::codec {
namespace {

struct Extent {
  int depth = 0;
  size_t values = 1;  // upper bound of the number of values
};

// Tracks, byte by byte, whether a position in a JSON text is inside a string.
class Strings {
 public:
  // Returns true if the next byte `c` is outside of strings; the quotes count as inside.
  bool IsOutside(char c) {
    if (!in_string_) {
      in_string_ = c == '"';
      return !in_string_;
    }
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
    }
    return false;
  }

 private:
  bool in_string_ = false;
  bool escaped_ = false;
};

// Returns the depth and the number of values of a text without parsing it. Iterative, because
// recursion over untrusted depth could overflow the stack.
Extent Measure(std::string_view text) {
  Extent out;
  int depth = 0;
  Strings strings;
  for (const char c : text) {
    if (!strings.IsOutside(c)) {
      continue;
    }
    if (c == '{' || c == '[') {
      out.depth = std::max(out.depth, ++depth);
      ++out.values;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',') {
      ++out.values;
    }
  }
  return out;
}

bool HoldsFloat(const Json& value) {
  if (value.is_number_float()) {
    return true;
  }
  if (!value.is_structured()) {
    return false;
  }
  for (const Json& member : value) {
    if (HoldsFloat(member)) {
      return true;
    }
  }
  return false;
}

absl::StatusOr<Extent> Within(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes_max) {
    return absl::InvalidArgumentError(
        fmt::format("JSON of {} bytes is over the limit of {}", text.size(), limits.bytes_max));
  }
  const Extent extent = Measure(text);
  if (extent.depth > limits.depth_max && !limits.prune) {
    return absl::InvalidArgumentError(
        fmt::format("JSON is nested deeper than {} levels", limits.depth_max));
  }
  if (extent.values > limits.values_max) {
    return absl::InvalidArgumentError(
        fmt::format("JSON of {} values is over the limit of {}", extent.values, limits.values_max));
  }
  return extent;
}

// Returns the text with null in place of every value deeper than `depth_max`. The filter of the
// JSON library is not used for that: it leaves invalid values behind when it drops several members
// of one object.
std::string Pruned(std::string_view text, int depth_max) {
  std::string out;
  int depth = 0;
  Strings strings;
  for (const char c : text) {
    const bool is_plain = strings.IsOutside(c);
    if (is_plain && (c == '{' || c == '[') && ++depth == depth_max + 1) {
      out += "null";
    }
    if (depth <= depth_max) {
      out += c;
    }
    if (is_plain && (c == '}' || c == ']')) {
      --depth;
    }
  }
  return out;
}

absl::StatusOr<Json> Parse(std::string_view text, const Json::parser_callback_t& filter) {
  try {
    return Json::parse(text, filter);
  } catch (const Json::parse_error& error) {
    return absl::InvalidArgumentError(fmt::format("malformed JSON at byte {}", error.byte));
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError("malformed JSON: a number is out of range");
  }
}

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text, const JsonLimits& limits) {
  CW_ASSIGN_OR_RETURN(const Extent extent, Within(text, limits));
  return extent.depth > limits.depth_max ? Parse(Pruned(text, limits.depth_max), nullptr)
                                         : Parse(text, nullptr);
}

absl::StatusOr<Json> ParseJsonItems(std::string_view text, const ItemsOf& what,
                                    const std::function<void(Json)>& each,
                                    const JsonLimits& limits) {
  CW_ASSIGN_OR_RETURN(const Extent extent, Within(text, limits));
  bool in_list = false;
  // The library counts the members of the whole object as depth 1, and the items of a list among
  // them as depth 2.
  const auto filter = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key) {
      const auto& name = value.get_ref<const std::string&>();
      in_list = depth == 1 ? name == what.list : in_list;
      return name != what.unread;
    }
    if (depth == 2 && in_list && event == Json::parse_event_t::object_end) {
      each(std::move(value));
      return false;
    }
    return true;
  };
  return extent.depth > limits.depth_max ? Parse(Pruned(text, limits.depth_max), filter)
                                         : Parse(text, filter);
}

std::string DumpJson(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<std::string> CanonicalJson(const Json& value) {
  if (HoldsFloat(value)) {
    return absl::InvalidArgumentError("canonical JSON must not contain floating point numbers");
  }
  try {
    return value.dump();
  } catch (const Json::type_error&) {
    return absl::InvalidArgumentError("strings of canonical JSON must be valid UTF-8");
  }
}

std::map<std::string, std::string> Texts(const Json* object) {
  std::map<std::string, std::string> out;
  if (object == nullptr || !object->is_object()) {
    return out;
  }
  for (const auto& [name, value] : object->items()) {
    if (value.is_string()) {
      out.emplace(name, value.get<std::string>());
    }
  }
  return out;
}

}  // namespace cachewarm::codec
