// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace cachewarm::cli {

// One option of a verb: "--name".
struct Option {
  std::string_view name;   // without the dashes
  std::string_view value;  // placeholder, for example "FILE"; empty: a flag without a value
  std::string_view help;
  bool repeats = false;
  char letter = 0;  // short form, for example 'n' for "-n"; 0: none
};

// Parsed arguments of a verb.
class Arguments {
 public:
  // Parses "--name value", "--name=value" and "-n value"; words after "--" are in rest(). Errors:
  // INVALID_ARGUMENT for an unknown option, a missing value, or a repeated option that may be given
  // only once.
  static absl::StatusOr<Arguments> Parse(std::span<const std::string> words,
                                         std::span<const Option> options);

  bool Has(std::string_view name) const { return flags_.contains(name); }
  // Returns the last value given for the option; `otherwise` if it was not given.
  std::string Value(std::string_view name, std::string_view otherwise = "") const;
  std::vector<std::string> Values(std::string_view name) const;
  const std::vector<std::string>& positionals() const { return positionals_; }
  const std::vector<std::string>& rest() const { return rest_; }

 private:
  std::set<std::string, std::less<>> flags_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> positionals_;
  std::vector<std::string> rest_;
};

}  // namespace cachewarm::cli
