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
// and every other word as a file name, or as a name that the program prints (Verb::names). For
// names, the options that select the cluster are passed on.

// Returns true if operands of the verb are written as KIND/NAME.
bool TakesKinds(const Verb& verb) {
  return verb.operands.find('/') != std::string_view::npos;
}

std::string BashScript() {
  std::vector<std::string> verbs;
  std::string cases;
  for (const Verb& verb : AllVerbs()) {
    verbs.emplace_back(verb.name);
    std::vector<std::string> options;
    for (const Option& option : OptionsOf(verb)) {
      options.push_back(fmt::format("--{}", option.name));
    }
    cases += fmt::format("    {}) words=\"{}\" names=\"{}\" cut=\"{}\" ;;\n", verb.name,
                         fmt::join(options, " "), verb.names, TakesKinds(verb) ? "" : "*/");
  }
  return fmt::format(
      "# bash completion for cachewarm: source <(cachewarm completion bash)\n"
      "_cachewarm_names() {{\n"
      "  local -a cluster=()\n"
      "  local i value\n"
      "  for ((i = 2; i < COMP_CWORD; i++)); do\n"
      "    case \"${{COMP_WORDS[i]}}\" in\n"
      "      -n|--namespace|--kubeconfig|--context|--cluster|--user|--as)\n"
      "        value=\"${{COMP_WORDS[i + 1]}}\"\n"
      "        [ \"$value\" = = ] && value=\"${{COMP_WORDS[i + 2]}}\"\n"
      "        cluster+=(\"${{COMP_WORDS[i]}}\" \"$value\") ;;\n"
      "    esac\n"
      "  done\n"
      "  \"${{COMP_WORDS[0]}}\" \"$@\" \"${{cluster[@]}}\" 2>/dev/null\n"
      "}}\n"
      "_cachewarm() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" words=\"\" names=\"\" cut=\"\" name\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"{} --help --version\" -- \"$word\")\n"
      "    return\n"
      "  fi\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n"
      "{}"
      "  esac\n"
      "  if [[ \"$word\" == --* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
      "  elif [ -n \"$names\" ]; then\n"
      "    compopt +o filenames 2>/dev/null\n"
      "    COMPREPLY=()\n"
      "    while IFS= read -r name; do\n"
      "      name=\"${{name##$cut}}\"\n"
      "      [[ \"$name\" == \"$word\"* ]] && COMPREPLY+=(\"$name\")\n"
      "    done < <(_cachewarm_names $names)\n"
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
    cases += fmt::format(" )\n      names=({}) cut=\"{}\" ;;\n", verb.names,
                         TakesKinds(verb) ? "" : "*/");
  }
  // A script in $fpath runs as the body of the function, a sourced one defines and registers it.
  return fmt::format(
      "#compdef cachewarm kubectl-cachewarm\n"
      "# zsh completion for cachewarm: source <(cachewarm completion zsh)\n"
      "_cachewarm_names() {{\n"
      "  local -a cluster\n"
      "  local i\n"
      "  for ((i = 3; i < CURRENT; i++)); do\n"
      "    case \"${{words[i]}}\" in\n"
      "      -n|--namespace|--kubeconfig|--context|--cluster|--user|--as)\n"
      "        cluster+=(\"${{words[i]}}\" \"${{words[i + 1]}}\") ;;\n"
      "      --namespace=*|--kubeconfig=*|--context=*|--cluster=*|--user=*|--as=*)\n"
      "        cluster+=(\"${{words[i]}}\") ;;\n"
      "    esac\n"
      "  done\n"
      "  \"${{words[1]}}\" \"$@\" \"${{cluster[@]}}\" 2>/dev/null\n"
      "}}\n"
      "_cachewarm() {{\n"
      "  local -a choices names\n"
      "  local cut\n"
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
      "  elif (( $#names )); then\n"
      "    choices=(${{(f)\"$(_cachewarm_names \"${{names[@]}}\")\"}})\n"
      "    compadd -- \"${{choices[@]##${{~cut}}}}\"\n"
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
      "function __cachewarm_names\n"
      "  set -l words (commandline -opc)\n"
      "  set -l cluster\n"
      "  set -l i 3\n"
      "  while test $i -le (count $words)\n"
      "    switch $words[$i]\n"
      "      case -n --namespace --kubeconfig --context --cluster --user --as\n"
      "        set -a cluster $words[$i] $words[(math $i + 1)]\n"
      "      case '--namespace=*' '--kubeconfig=*' '--context=*' '--cluster=*' '--user=*' "
      "'--as=*'\n"
      "        set -a cluster $words[$i]\n"
      "    end\n"
      "    set i (math $i + 1)\n"
      "  end\n"
      "  type -q $words[1]; and command $words[1] $argv $cluster 2>/dev/null\n"
      "end\n"
      "for program in cachewarm kubectl-cachewarm\n";
  for (const Verb& verb : AllVerbs()) {
    script += fmt::format("  complete -c $program -n __fish_use_subcommand -f -a {} -d {}\n",
                          verb.name, Quoted(verb.summary));
    if (!verb.names.empty()) {
      script += fmt::format(
          "  complete -c $program -n '__fish_seen_subcommand_from {}' -f -a "
          "'(__cachewarm_names {}{})'\n",
          verb.name, verb.names, TakesKinds(verb) ? "" : " | string replace -r \".*/\" \"\"");
    }
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
          "Completes verbs, options, file names, and names of CacheWarmups, of held pods and of\n"
          "cache kinds, which it asks the program for, with the options on the command line that\n"
          "select a cluster. SHELL is bash, zsh or fish (default: bash). Add one of these lines to "
          "~/.bashrc, ~/.zshrc (after compinit) or\n"
          "~/.config/fish/config.fish:\n\n"
          "  source <(cachewarm completion bash)\n"
          "  source <(cachewarm completion zsh)\n"
          "  cachewarm completion fish | source\n",
      .options = {},
      .run = Completion};
}

}  // namespace cachewarm::cli
