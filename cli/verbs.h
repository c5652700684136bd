// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/arguments.h"
#include "cli/console.h"

namespace cachewarm::cli {

// A verb of the program.
struct Verb {
  std::string_view name;
  std::string_view operands;  // one word per operand: "DIRECTORY BUNDLE"; at most one: "[SHELL]",
                              // any number: "[POD...]"
  std::string_view summary;   // one line
  std::string_view text;      // description for first-time users, with an example
  std::vector<Option> options;
  std::vector<std::span<const Option>> groups;  // options that it shares with other verbs
  // Runs the verb. The number of positionals in `arguments` is one that `operands` allows. Returns
  // the exit code; for "run", the exit code of the command. RunProgram() prints an error as a
  // message and converts it to an exit code.
  absl::StatusOr<int> (*run)(const Arguments& arguments, Console& console);
  bool takes_rest = false;  // the verb requires words after "--"
  // For completion: words of the call of this program that prints the operands, one NAME or
  // KIND/NAME a line. Empty: operands are files.
  std::string_view names{};
};

// Returns all verbs in the order of the help.
const std::vector<Verb>& AllVerbs();

// Returns all options of `verb` in the order of its help: its own, its groups, --help.
std::vector<Option> OptionsOf(const Verb& verb);

std::string ProgramHelp();
std::string VerbHelp(const Verb& verb);

// Runs the program with the arguments `words`. Returns the exit code: an ExitCode or, for "run",
// the exit code of the command.
int RunProgram(std::span<const std::string> words, Console& console);

}  // namespace cachewarm::cli
