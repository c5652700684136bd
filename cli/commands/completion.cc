// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"
#include "fmt/format.h"

namespace cachewarm::cli {
namespace {

// Returns a bash script that completes the first word as a verb, words that begin with "--" as
// options of the verb, and every other word as a file name.
std::string BashScript() {
  std::string verbs;
  std::string cases;
  for (const Verb& verb : AllVerbs()) {
    verbs += fmt::format("{}{}", verbs.empty() ? "" : " ", verb.name);
    std::string options;
    for (const Option& option : OptionsOf(verb)) {
      options += fmt::format("{}--{}", options.empty() ? "" : " ", option.name);
    }
    cases += fmt::format("    {}) words=\"{}\" ;;\n", verb.name, options);
  }
  return fmt::format(
      "# bash completion for cachewarm: source <(cachewarm completion)\n"
      "_cachewarm() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" words=\"\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"{} --help --version\" -- \"$word\")\n"
      "    return\n"
      "  fi\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n"
      "{}"
      "  esac\n"
      "  if [[ \"$word\" == --* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
      "  else\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
      "  fi\n"
      "}}\n"
      "complete -o filenames -F _cachewarm cachewarm kubectl-cachewarm\n",
      verbs, cases);
}

absl::StatusOr<int> Completion(const Arguments& /*arguments*/, Console& console) {
  console.out << BashScript();
  return kOk;
}

}  // namespace

Verb CompletionVerb() {
  return {.name = "completion",
          .operands = "",
          .summary = "Print the bash completion script",
          .text =
              "Completes verbs, options and file names. Add this line to ~/.bashrc:\n\n"
              "  source <(cachewarm completion)\n",
          .options = {},
          .run = Completion};
}

}  // namespace cachewarm::cli
