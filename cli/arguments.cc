// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <algorithm>

#include "fmt/format.h"

namespace cachewarm::cli {
namespace {

absl::Status Usage(std::string_view name, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("--{}: {}", name, problem));
}

}  // namespace

absl::StatusOr<Arguments> Arguments::Parse(std::span<const std::string> words,
                                           std::span<const Option> options) {
  Arguments parsed;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") {
      parsed.rest_.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (!word.starts_with("--")) {
      parsed.positionals_.emplace_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name(word.substr(2, equals == word.npos ? word.npos : equals - 2));
    const auto option = std::find_if(options.begin(), options.end(),
                                     [&](const Option& each) { return each.name == name; });
    if (option == options.end()) {
      return Usage(name, "there is no such option; see --help");
    }
    if (option->value.empty()) {
      if (equals != word.npos) {
        return Usage(name, "takes no value");
      }
      parsed.flags_.insert(name);
      continue;
    }
    if (equals == word.npos && i + 1 == words.size()) {
      return Usage(name, fmt::format("expected {} behind it", option->value));
    }
    std::vector<std::string>& values = parsed.values_[name];
    if (!values.empty() && !option->repeats) {
      return Usage(name, "is given twice");
    }
    values.push_back(equals == word.npos ? words[++i] : std::string(word.substr(equals + 1)));
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
