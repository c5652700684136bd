// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>

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

// Parses integers like "0x1F" and "0o17", which have no sign. False for other texts.
bool IsPrefixedInteger(std::string_view text, int64_t& out) {
  return (text.starts_with("0x") && text.find('-') == std::string_view::npos &&
          Whole(text.substr(2), out, 16)) ||
         (text.starts_with("0o") && text.find('-') == std::string_view::npos &&
          Whole(text.substr(2), out, 8));
}

// Returns the value of an untagged plain scalar by the core schema (YAML 1.2.2 §10.3.2).
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

struct InvalidYaml {
  YAML::Mark mark;
  std::string problem;
};

// Builds JSON from the events of the parser, so that the limits apply during parsing: for some
// malformed texts yaml-cpp 0.7 never stops emitting nodes.
class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(const YamlLimits& limits) : limits_(limits) {}

  std::vector<Json>& documents() { return documents_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    anchors_.clear();
    Count(mark, 1);
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Count(mark, 1);
    Add(mark, {.value = nullptr}, anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Count(mark, 1);
    if (WantsKey()) {
      if (open_.back().value.contains(text)) {
        throw InvalidYaml{mark, fmt::format("duplicate key \"{}\"", text)};
      }
      open_.back().key = text;
      Remember({.value = text}, anchor);
      return;
    }
    const bool is_text = tag == "!" || tag == "tag:yaml.org,2002:str";
    Add(mark, {.value = is_text ? Json(text) : PlainScalar(text)}, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      throw InvalidYaml{mark, "an alias is inside the node that it refers to"};
    }
    Count(mark, found->second.nodes);
    Add(mark, found->second, 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, Json::array(), anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, Json::object(), anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Counted {
    Json value;
    size_t nodes = 1;
  };
  // A list or map that has not ended yet.
  struct Unfinished {
    Json value;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    size_t nodes_before = 0;
    std::optional<std::string> key;  // key of the member whose value follows
  };

  bool WantsKey() const {
    return !open_.empty() && open_.back().value.is_object() && !open_.back().key.has_value();
  }

  void Count(const YAML::Mark& mark, size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > limits_.nodes_max) {
      throw InvalidYaml{mark, fmt::format("the text has more than {} nodes", limits_.nodes_max)};
    }
  }

  void Remember(Counted counted, YAML::anchor_t anchor) {
    if (anchor != 0) {
      anchors_[anchor] = std::move(counted);
    }
  }

  void Add(const YAML::Mark& mark, const Counted& counted, YAML::anchor_t anchor) {
    Remember(counted, anchor);
    if (open_.empty()) {
      if (!counted.value.is_null()) {
        documents_.push_back(counted.value);
      }
      return;
    }
    Unfinished& parent = open_.back();
    if (parent.value.is_array()) {
      parent.value.push_back(counted.value);
      return;
    }
    if (WantsKey()) {
      throw InvalidYaml{mark, "a key must be a string"};
    }
    parent.value.emplace(*parent.key, counted.value);
    parent.key.reset();
  }

  void Open(const YAML::Mark& mark, Json empty, YAML::anchor_t anchor) {
    if (WantsKey()) {
      throw InvalidYaml{mark, "a key must be a string"};
    }
    if (open_.size() >= static_cast<size_t>(limits_.depth_max)) {
      throw InvalidYaml{mark, fmt::format("nested deeper than {} levels", limits_.depth_max)};
    }
    open_.push_back(
        {.value = std::move(empty), .mark = mark, .anchor = anchor, .nodes_before = nodes_});
    Count(mark, 1);
  }

  void Close() {
    Unfinished done = std::move(open_.back());
    open_.pop_back();
    Add(done.mark, {.value = std::move(done.value), .nodes = nodes_ - done.nodes_before},
        done.anchor);
  }

  const YamlLimits& limits_;
  size_t nodes_ = 0;
  std::vector<Unfinished> open_;
  std::map<YAML::anchor_t, Counted> anchors_;
  std::vector<Json> documents_;
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
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(limits);
    while (parser.HandleNextDocument(builder)) {
    }
    return std::move(builder.documents());
  } catch (const InvalidYaml& refused) {
    return At(refused.mark, refused.problem);
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
