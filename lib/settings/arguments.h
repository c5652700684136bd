// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// Parses the command lines of the operator, the agent and the program cachewarm. Pure.
namespace cachewarm::settings {

// Range of whole numbers, both ends included.
struct Range {
  int64_t min = 0;
  int64_t max = INT64_MAX;
};

// One option: "--name".
struct Option {
  std::string_view name;   // without the dashes
  std::string_view value;  // placeholder, for example "FILE"; empty: a flag without a value
  std::string_view help;
  bool repeats = false;
  char letter = 0;               // short form, for example 'n' for "-n"; 0: none
  std::optional<Range> range{};  // if set, the value must be a whole number in this range
  // Checks a value; null: any value is accepted. An error describes the problem with the value.
  absl::Status (*check)(const std::string& value) = nullptr;
  bool is_switch = false;  // "--name" without a value means "--name=true"
};

// Parsed arguments, whose values have passed the checks of their options.
class Arguments {
 public:
  // Parses "--name value", "--name=value" and "-n value"; words after "--" are in rest(). An empty
  // value of an option that has a range or a check counts as not given. Errors:
  // INVALID_ARGUMENT names the option and the remedy: an unknown option, a missing or wrong value,
  // or a repeated option that may be given only once.
  static absl::StatusOr<Arguments> Parse(std::span<const std::string> words,
                                         std::span<const Option> options);

  // Returns true if the option, with or without a value, was given.
  bool Has(std::string_view name) const { return values_.contains(name); }
  // Returns the last value given for the option; `otherwise` if it was not given.
  std::string Value(std::string_view name, std::string_view otherwise = "") const;
  std::vector<std::string> Values(std::string_view name) const;
  // Returns the value of an option that has a range; `otherwise` if it was not given.
  int64_t Number(std::string_view name, int64_t otherwise) const;
  const std::vector<std::string>& positionals() const { return positionals_; }
  const std::vector<std::string>& rest() const { return rest_; }

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> positionals_;
  std::vector<std::string> rest_;
};

// Returns "did you mean NAME?" for the name that differs least from `word`; `otherwise` if all
// differ in more than about a quarter of its characters. Compares the first 64 bytes.
std::string Suggestion(std::string_view word, std::span<const std::string> names,
                       std::string_view otherwise);

// Breaks `text` at blanks into lines of at most 90 columns. Indents all lines but the first by
// `indent` blanks; the caller prints the first one in that column.
std::string Wrapped(std::string_view text, size_t indent);

}  // namespace cachewarm::settings
