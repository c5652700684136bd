// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/kube_selector.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/error.h"
#include "lib/kube/core/object.h"

namespace cachewarm::fakes {
namespace {

using codec::Json;

absl::Status BadRequest(const std::string& message) {
  return kube::ToStatus(
      {.code = 400, .reason = "BadRequest", .message = message, .retry_after = {}});
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  return text;
}

// Splits at commas outside parentheses.
std::vector<std::string_view> SplitTerms(std::string_view text) {
  std::vector<std::string_view> terms;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (const std::string_view term = Trim(text.substr(begin, i - begin)); !term.empty()) {
        terms.push_back(term);
      }
      begin = i + 1;
    } else if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')') {
      --depth;
    }
  }
  return terms;
}

struct Term {
  std::string key;
  std::string values;  // between the parentheses, or the one value
  bool is_set = false;
  bool is_negated = false;
};

// "a=b", "a==b", "a!=b", "a in (b,c)", "a notin (b)".
std::optional<Term> ParseTerm(std::string_view term) {
  for (const std::string_view word : {" notin ", " in "}) {
    if (const size_t at = term.find(word); at != std::string_view::npos) {
      const std::string_view rest = Trim(term.substr(at + word.size()));
      if (rest.size() < 2 || rest.front() != '(' || rest.back() != ')') {
        return std::nullopt;
      }
      return Term{.key = std::string(Trim(term.substr(0, at))),
                  .values = std::string(rest.substr(1, rest.size() - 2)),
                  .is_set = true,
                  .is_negated = word == " notin "};
    }
  }
  const size_t at = term.find('=');
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const bool negated = at > 0 && term[at - 1] == '!';
  const size_t value = at + 1 < term.size() && term[at + 1] == '=' ? at + 2 : at + 1;
  return Term{.key = std::string(Trim(term.substr(0, negated ? at - 1 : at))),
              .values = std::string(Trim(term.substr(value))),
              .is_negated = negated};
}

bool Holds(const Term& term, const std::optional<std::string>& actual) {
  bool equal = false;
  if (actual.has_value()) {
    if (term.is_set) {
      const auto values = SplitTerms(term.values);
      equal = std::find(values.begin(), values.end(), *actual) != values.end();
    } else {
      equal = *actual == term.values;
    }
  }
  return equal != term.is_negated;
}

absl::StatusOr<bool> LabelHolds(std::string_view text,
                                const std::map<std::string, std::string>& labels) {
  const auto label = [&](const std::string& key) -> std::optional<std::string> {
    const auto found = labels.find(key);
    return found == labels.end() ? std::nullopt : std::optional(found->second);
  };
  if (text.find('=') == std::string_view::npos && text.find(' ') == std::string_view::npos) {
    const bool negated = text.front() == '!';
    return label(std::string(negated ? text.substr(1) : text)).has_value() != negated;
  }
  const std::optional<Term> term = ParseTerm(text);
  if (!term.has_value()) {
    return BadRequest(fmt::format("unable to parse requirement: {}", text));
  }
  return Holds(*term, label(term->key));
}

std::optional<std::string> FieldOf(const Json& object, const std::string& field) {
  for (const auto& [name, section, member] :
       {std::tuple("metadata.name", "metadata", "name"),
        std::tuple("metadata.namespace", "metadata", "namespace"),
        std::tuple("spec.driver", "spec", "driver"),  // of ResourceSlices
        std::tuple("spec.nodeName", "spec", "nodeName"),
        std::tuple("status.phase", "status", "phase")}) {
    if (field == name) {
      return codec::TextAt(object, {section, member});
    }
  }
  if (field == "reason") {  // of events
    return codec::TextAt(object, {"reason"});
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<bool> KubeSelector::Matches(const Json& object) const {
  const std::map<std::string, std::string> own = kube::LabelsOf(object);
  bool matches = true;
  for (const std::string_view text : SplitTerms(labels)) {
    CW_ASSIGN_OR_RETURN(const bool holds, LabelHolds(text, own));
    matches = matches && holds;
  }
  for (const std::string_view text : SplitTerms(fields)) {
    const std::optional<Term> term = ParseTerm(text);
    const auto actual = term.has_value() ? FieldOf(object, term->key) : std::nullopt;
    if (!actual.has_value()) {
      return BadRequest(fmt::format("field label not supported: {}", text));
    }
    matches = matches && Holds(*term, actual);
  }
  return matches;
}

}  // namespace cachewarm::fakes
