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

// One thing that the program does.
struct Verb {
  std::string_view name;
  std::string_view operands;  // "DIRECTORY BUNDLE"; one word each. "[POD...]": any number
  std::string_view summary;   // one line
  std::string_view text;      // what a newcomer must know, with an example
  std::vector<Option> options;
  // Operands are as many as `operands` says. What the verb could not do is its status; the
  // exit code of a child (run) its value.
  absl::StatusOr<int> (*run)(const Arguments& arguments, Console& console);
  bool takes_rest = false;  // words behind "--"
};

// In the order of the help.
const std::vector<Verb>& AllVerbs();

// Every option of `verb`: its own and those that all verbs have.
std::vector<Option> OptionsOf(const Verb& verb);

std::string ProgramHelp();
std::string VerbHelp(const Verb& verb);

// The whole program: `words` without its name. Returns the exit code (ExitCode, or a child's).
int RunProgram(std::span<const std::string> words, Console& console);

}  // namespace cachewarm::cli
