// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <algorithm>
#include <optional>

#include "fmt/format.h"

namespace cachewarm::cli {
namespace {

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

GivenOption ReadOption(std::string_view word, std::span<const Option> options) {
  const size_t equals = word.find('=');
  GivenOption given{.shown = std::string(word.substr(0, equals)), .value = {}};
  if (equals != word.npos) {
    given.value = std::string(word.substr(equals + 1));
  }
  const bool is_long = word.starts_with("--");
  const auto found = std::find_if(options.begin(), options.end(), [&](const Option& each) {
    return is_long ? each.name == given.shown.substr(2)
                   : each.letter != 0 && each.letter == given.shown[1];
  });
  given.option = found == options.end() ? nullptr : &*found;
  return given;
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
    GivenOption given = ReadOption(words[i], options);
    if (given.option == nullptr) {
      return UsageError(given, "unknown option; see --help");
    }
    const std::string name(given.option->name);
    if (given.option->value.empty()) {
      if (given.value.has_value()) {
        return UsageError(given, "takes no value");
      }
      parsed.flags_.insert(name);
      continue;
    }
    if (!given.value.has_value() && i + 1 == words.size()) {
      return UsageError(given, fmt::format("requires a value: {}", given.option->value));
    }
    std::vector<std::string>& values = parsed.values_[name];
    if (!values.empty() && !given.option->repeats) {
      return UsageError(given, "may be given only once");
    }
    values.push_back(given.value.has_value() ? *given.value : words[++i]);
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

}  // namespace cachewarm::cli
