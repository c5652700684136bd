// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cli/commands/commands.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace cachewarm::cli {
namespace {

// Returns `text` in single quotes, which bash, zsh and fish read alike.
std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

// Returns the help of an option up to the first detail, so that it fits beside the option.
std::string_view Brief(std::string_view help) {
  return help.substr(0, std::min({help.find(" ("), help.find("; "), help.find(", ")}));
}

// Each script completes the first word as a verb, words that begin with "-" as options of the verb,
// and every other word as a file name.

std::string BashScript() {
  std::vector<std::string> verbs;
  std::string cases;
  for (const Verb& verb : AllVerbs()) {
    verbs.emplace_back(verb.name);
    std::vector<std::string> options;
    for (const Option& option : OptionsOf(verb)) {
      options.push_back(fmt::format("--{}", option.name));
    }
    cases += fmt::format("    {}) words=\"{}\" ;;\n", verb.name, fmt::join(options, " "));
  }
  return fmt::format(
      "# bash completion for cachewarm: source <(cachewarm completion bash)\n"
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
      fmt::join(verbs, " "), cases);
}

std::string ZshScript() {
  std::string verbs;
  std::string cases;
  for (const Verb& verb : AllVerbs()) {
    verbs += fmt::format(" {}", Quoted(fmt::format("{}:{}", verb.name, verb.summary)));
    cases += fmt::format("    {}) choices=(", verb.name);
    for (const Option& option : OptionsOf(verb)) {
      cases += fmt::format(" {}", Quoted(fmt::format("--{}:{}", option.name, Brief(option.help))));
    }
    cases += " ) ;;\n";
  }
  // A script in $fpath runs as the body of the function, a sourced one defines and registers it.
  return fmt::format(
      "#compdef cachewarm kubectl-cachewarm\n"
      "# zsh completion for cachewarm: source <(cachewarm completion zsh)\n"
      "_cachewarm() {{\n"
      "  local -a choices\n"
      "  if (( CURRENT == 2 )); then\n"
      "    choices=({} )\n"
      "    _describe verb choices\n"
      "    return\n"
      "  fi\n"
      "  case \"${{words[2]}}\" in\n"
      "{}"
      "  esac\n"
      "  if [[ \"${{words[CURRENT]}}\" == -* ]]; then\n"
      "    _describe -o option choices\n"
      "  else\n"
      "    _files\n"
      "  fi\n"
      "}}\n"
      "if [ \"${{funcstack[1]}}\" = _cachewarm ]; then\n"
      "  _cachewarm \"$@\"\n"
      "else\n"
      "  compdef _cachewarm cachewarm kubectl-cachewarm\n"
      "fi\n",
      verbs, cases);
}

std::string FishScript() {
  std::string script =
      "# fish completion for cachewarm: cachewarm completion fish | source\n"
      "for program in cachewarm kubectl-cachewarm\n";
  for (const Verb& verb : AllVerbs()) {
    script += fmt::format("  complete -c $program -n __fish_use_subcommand -f -a {} -d {}\n",
                          verb.name, Quoted(verb.summary));
    for (const Option& option : OptionsOf(verb)) {
      script += fmt::format(
          "  complete -c $program -n '__fish_seen_subcommand_from {}' -l {}{}{} -d {}\n", verb.name,
          option.name, option.letter == 0 ? "" : fmt::format(" -s {}", option.letter),
          option.value.empty() ? "" : " -r", Quoted(Brief(option.help)));
    }
  }
  return script + "end\n";
}

absl::StatusOr<int> Completion(const Arguments& arguments, Console& console) {
  const std::string shell =
      arguments.positionals().empty() ? "bash" : arguments.positionals().front();
  if (shell == "bash") {
    console.out << BashScript();
  } else if (shell == "zsh") {
    console.out << ZshScript();
  } else if (shell == "fish") {
    console.out << FishScript();
  } else {
    return UsageError(
        fmt::format("\"{}\" is not a known shell: expected bash, zsh or fish", shell));
  }
  return kOk;
}

}  // namespace

Verb CompletionVerb() {
  return {
      .name = "completion",
      .operands = "[SHELL]",
      .summary = "Print the completion script for bash, zsh or fish",
      .text =
          "Completes verbs, options and file names. SHELL is bash, zsh or fish (default: bash).\n"
          "Add one of these lines to ~/.bashrc, ~/.zshrc (after compinit) or\n"
          "~/.config/fish/config.fish:\n\n"
          "  source <(cachewarm completion bash)\n"
          "  source <(cachewarm completion zsh)\n"
          "  cachewarm completion fish | source\n",
      .options = {},
      .run = Completion};
}

}  // namespace cachewarm::cli
