// SPDX-License-Identifier: Apache-2.0
#include "lib/settings/arguments.h"

#include <algorithm>
#include <array>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/settings/values.h"

namespace cachewarm::settings {
namespace {

constexpr size_t kComparedBytes = 64;
constexpr size_t kColumns = 90;

// One option on the command line.
struct GivenOption {
  std::string shown;  // "--name" or "-n", for messages
  std::optional<std::string> value;
  const Option* option = nullptr;
};

absl::Status UsageError(const GivenOption& given, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", given.shown, problem));
}

bool IsOption(std::string_view word) {
  return word.starts_with("--") || (word.size() == 2 && word[0] == '-');
}

absl::StatusOr<GivenOption> ReadOption(std::string_view word, std::span<const Option> options) {
  const size_t equals = word.find('=');
  GivenOption given{.shown = std::string(word.substr(0, equals)), .value = {}};
  if (equals != word.npos) {
    given.value = std::string(word.substr(equals + 1));
  }
  std::vector<std::string> names;
  for (const Option& each : options) {
    names.push_back(fmt::format("--{}", each.name));
    if (given.shown == names.back() ||
        (each.letter != 0 && given.shown == fmt::format("-{}", each.letter))) {
      given.option = &each;
      return given;
    }
  }
  return UsageError(given, fmt::format("unknown option; {}",
                                       Suggestion(given.shown, names, "--help lists all options")));
}

absl::Status CheckValue(const GivenOption& given) {
  const Option& option = *given.option;
  absl::Status status;
  if (option.range.has_value()) {
    status = WholeNumber(*given.value, option.range->min, option.range->max).status();
  } else if (option.check != nullptr) {
    status = option.check(*given.value);
  }
  return Annotate(status, given.shown);
}

// Returns the number of characters that are replaced, added or removed, or exchanged with an
// adjacent one, between the two texts (optimal string alignment).
size_t Distance(std::string_view a, std::string_view b) {
  std::array<std::array<size_t, kComparedBytes + 1>, kComparedBytes + 1> edits{};
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        edits[i][j] = i + j;
        continue;
      }
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1,
                              edits[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
      }
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace

absl::StatusOr<Arguments> Arguments::Parse(std::span<const std::string> words,
                                           std::span<const Option> options) {
  Arguments parsed;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      parsed.rest_.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (!IsOption(words[i])) {
      parsed.positionals_.emplace_back(words[i]);
      continue;
    }
    CW_ASSIGN_OR_RETURN(GivenOption given, ReadOption(words[i], options));
    const Option& option = *given.option;
    const bool is_given = parsed.Has(option.name);
    if (option.value.empty() && given.value.has_value()) {
      return UsageError(given, "takes no value");
    }
    if (is_given && !option.repeats && !option.value.empty()) {
      return UsageError(given, "may be given only once");
    }
    if (!given.value.has_value() && (option.value.empty() || option.is_switch)) {
      parsed.values_[std::string(option.name)].emplace_back("true");
      continue;
    }
    if (!given.value.has_value() && i + 1 == words.size()) {
      return UsageError(given, fmt::format("requires a value: {} {}", given.shown, option.value));
    }
    if (!given.value.has_value()) {
      given.value = words[++i];
    }
    const bool is_checked = option.range.has_value() || option.check != nullptr;
    if (is_checked && given.value->empty()) {
      continue;  // counts as not given
    }
    CW_RETURN_IF_ERROR(CheckValue(given));
    parsed.values_[std::string(option.name)].push_back(*std::move(given.value));
  }
  return parsed;
}

std::string Arguments::Value(std::string_view name, std::string_view otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string(otherwise) : found->second.back();
}

std::vector<std::string> Arguments::Values(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

int64_t Arguments::Number(std::string_view name, int64_t otherwise) const {
  return WholeNumber(Value(name), INT64_MIN, INT64_MAX).value_or(otherwise);
}

std::string Suggestion(std::string_view word, std::span<const std::string> names,
                       std::string_view otherwise) {
  word = word.substr(0, kComparedBytes);
  size_t least = (word.size() + 1) / 4 + 1;
  std::string suggestion(otherwise);
  for (const std::string& name : names) {
    const size_t distance = Distance(word, std::string_view(name).substr(0, kComparedBytes));
    if (distance < least) {
      least = distance;
      suggestion = fmt::format("did you mean {}?", name);
    }
  }
  return suggestion;
}

std::string Wrapped(std::string_view text, size_t indent) {
  const size_t width = kColumns - indent;
  std::string lines;
  while (text.size() > width) {
    const size_t last = text.rfind(' ', width);
    const size_t end = last == text.npos ? text.find(' ') : last;
    if (end == text.npos) {
      break;
    }
    lines += fmt::format("{}\n{:{}}", text.substr(0, end), "", indent);
    text.remove_prefix(end + 1);
  }
  return lines + std::string(text);
}

}  // namespace cachewarm::settings
