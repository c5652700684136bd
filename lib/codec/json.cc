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
  size_t values = 1;  // at least as many as there are
};

// Of a text, outside its strings, without building a value: the parser recurses, we do not.
Extent Measure(std::string_view text) {
  Extent out;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
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

absl::Status Within(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes_max) {
    return absl::InvalidArgumentError(
        fmt::format("JSON of {} bytes is over the limit of {}", text.size(), limits.bytes_max));
  }
  const Extent extent = Measure(text);
  if (extent.depth > limits.depth_max) {
    return absl::InvalidArgumentError(
        fmt::format("JSON is nested deeper than {} levels", limits.depth_max));
  }
  if (extent.values > limits.values_max) {
    return absl::InvalidArgumentError(
        fmt::format("JSON of {} values is over the limit of {}", extent.values, limits.values_max));
  }
  return absl::OkStatus();
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
  CW_RETURN_IF_ERROR(Within(text, limits));
  return Parse(text, nullptr);
}

absl::StatusOr<Json> ParseJsonItems(std::string_view text, const ItemsOf& what,
                                    const std::function<void(Json)>& each,
                                    const JsonLimits& limits) {
  CW_RETURN_IF_ERROR(Within(text, limits));
  bool in_list = false;
  // Depths are the library's: members of the whole are at 1, items of a list in it at 2.
  return Parse(text, [&](int depth, Json::parse_event_t event, Json& value) {
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
  });
}

std::string DumpJson(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<std::string> CanonicalJson(const Json& value) {
  if (HoldsFloat(value)) {
    return absl::InvalidArgumentError("canonical JSON holds no floating point numbers");
  }
  try {
    return value.dump();
  } catch (const Json::type_error&) {
    return absl::InvalidArgumentError("canonical JSON holds only valid UTF-8");
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
