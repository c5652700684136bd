// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/yaml.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/codec/json_value.h"

namespace cachewarm::codec {
namespace {

absl::Status At(const YAML::Mark& mark, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("malformed YAML at line {} column {}: {}",
                                                mark.line + 1, mark.column + 1, problem));
}

template <typename Number, typename... Base>
bool Whole(std::string_view text, Number& out, Base... base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base...);
  return error == std::errc() && end == text.data() + text.size();
}

// "0x1F" and "0o17", which have no sign.
bool IsPrefixedInteger(std::string_view text, int64_t& out) {
  return (text.starts_with("0x") && text.find('-') == std::string_view::npos &&
          Whole(text.substr(2), out, 16)) ||
         (text.starts_with("0o") && text.find('-') == std::string_view::npos &&
          Whole(text.substr(2), out, 8));
}

// An untagged plain scalar by the core schema (YAML 1.2.2 §10.3.2).
Json PlainScalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return nullptr;
  }
  if (text == "true" || text == "True" || text == "TRUE") {
    return true;
  }
  if (text == "false" || text == "False" || text == "FALSE") {
    return false;
  }
  const bool plus = text.front() == '+' && !text.starts_with("+-");
  const std::string_view unsigned_text = std::string_view(text).substr(plus ? 1 : 0);
  if (int64_t integer = 0; Whole(unsigned_text, integer) || IsPrefixedInteger(text, integer)) {
    return integer;
  }
  const bool number_like = text.find_first_not_of("+-.0123456789eE") == std::string::npos &&
                           text.find_first_of("0123456789") != std::string::npos;
  if (double real = 0; number_like && Whole(unsigned_text, real) && std::isfinite(real)) {
    return real;
  }
  return text;
}

class Converter {
 public:
  explicit Converter(const YamlLimits& limits) : limits_(limits) {}

  absl::StatusOr<Json> Convert(const YAML::Node& node, int depth) {
    if (depth > limits_.depth_max || ++nodes_ > limits_.nodes_max) {
      return At(node.Mark(), "nested too deep or too many nodes");
    }
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return Json(nullptr);
      case YAML::NodeType::Scalar:
        return node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str"
                   ? Json(node.Scalar())
                   : PlainScalar(node.Scalar());
      case YAML::NodeType::Sequence:
        return Sequence(node, depth);
      case YAML::NodeType::Map:
        return Map(node, depth);
    }
    return At(node.Mark(), "unknown kind of node");
  }

 private:
  absl::StatusOr<Json> Sequence(const YAML::Node& node, int depth) {
    Json list = Json::array();
    for (const YAML::Node& item : node) {
      CW_ASSIGN_OR_RETURN(Json value, Convert(item, depth + 1));
      list.push_back(std::move(value));
    }
    return list;
  }

  absl::StatusOr<Json> Map(const YAML::Node& node, int depth) {
    Json object = Json::object();
    for (const auto& pair : node) {
      const YAML::Node& key = pair.first;
      if (!key.IsScalar()) {
        return At(key.Mark(), "a key must be a string");
      }
      CW_ASSIGN_OR_RETURN(Json member, Convert(pair.second, depth + 1));
      if (!object.emplace(key.Scalar(), std::move(member)).second) {
        return At(key.Mark(), fmt::format("the key \"{}\" stands twice", key.Scalar()));
      }
    }
    return object;
  }

  const YamlLimits& limits_;
  size_t nodes_ = 0;
};

absl::Status CheckText(std::string_view text, const YamlLimits& limits) {
  if (text.size() > limits.bytes_max) {
    return absl::InvalidArgumentError(
        fmt::format("YAML of {} bytes is over the limit of {}", text.size(), limits.bytes_max));
  }
  if (!IsUtf8(text)) {
    return absl::InvalidArgumentError("malformed YAML: it is not UTF-8");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Json>> ParseYamlStream(std::string_view text, const YamlLimits& limits) {
  CW_RETURN_IF_ERROR(CheckText(text, limits));
  try {
    std::vector<Json> documents;
    for (const YAML::Node& node : YAML::LoadAll(std::string(text))) {
      CW_ASSIGN_OR_RETURN(Json document, Converter(limits).Convert(node, 0));
      if (!document.is_null()) {
        documents.push_back(std::move(document));
      }
    }
    return documents;
  } catch (const YAML::Exception& error) {
    return At(error.mark, error.msg);
  }
}

absl::StatusOr<Json> ParseYaml(std::string_view text, const YamlLimits& limits) {
  CW_ASSIGN_OR_RETURN(std::vector<Json> documents, ParseYamlStream(text, limits));
  if (documents.size() != 1) {
    return absl::InvalidArgumentError(
        fmt::format("expected one YAML document, found {}", documents.size()));
  }
  return std::move(documents.front());
}

}  // namespace cachewarm::codec
