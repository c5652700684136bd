// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include <algorithm>
#include <sstream>

#include "cli/commands/commands.h"
#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::cli {
namespace {

constexpr std::string_view kAbout =
    "cachewarm packs the compile caches of model servers (torch.compile, Triton, vLLM, ...) into\n"
    "bundles, so that a server starts warm on another machine. A bundle is an OCI artifact in a\n"
    "registry or in an image layout directory. In a cluster, it can release pods that are held\n"
    "for their cache. The program is also a kubectl plugin: kubectl cachewarm VERB.\n";

std::vector<std::string> WordsOf(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

std::string OptionLine(const Option& option) {
  const std::string letter = option.letter == 0 ? "" : fmt::format("-{}, ", option.letter);
  const std::string left = option.value.empty()
                               ? fmt::format("{}--{}", letter, option.name)
                               : fmt::format("{}--{} {}", letter, option.name, option.value);
  return fmt::format("  {:<28} {}{}\n", left, option.help, option.repeats ? " (repeatable)" : "");
}

// Prints a usage error. Returns its exit code.
int ReportUsageError(Console& console, std::string_view problem, std::string_view verb) {
  console.err << fmt::format("cachewarm: {}\n", problem)
              << fmt::format("See \"cachewarm {}{}--help\".\n", verb, verb.empty() ? "" : " ");
  return kUsage;
}

int RunVerb(const Verb& verb, std::span<const std::string> words, Console& console) {
  const auto arguments = Arguments::Parse(words, OptionsOf(verb));
  if (!arguments.ok()) {
    return ReportUsageError(console, Message(arguments.status()), verb.name);
  }
  if (arguments->Has("help")) {
    console.out << VerbHelp(verb);
    return kOk;
  }
  const size_t operands = WordsOf(verb.operands).size();
  if (!verb.operands.ends_with("...]") && arguments->positionals().size() != operands) {
    return ReportUsageError(
        console,
        fmt::format("{} takes {}, but {} operands were given", verb.name,
                    operands == 0 ? "no operand" : verb.operands, arguments->positionals().size()),
        verb.name);
  }
  if (verb.takes_rest == arguments->rest().empty()) {
    return ReportUsageError(
        console, verb.takes_rest ? "a command is required after --" : "nothing may follow --",
        verb.name);
  }
  const absl::StatusOr<int> code = verb.run(*arguments, console);
  if (!code.ok()) {
    console.err << fmt::format("cachewarm {}: {}\n", verb.name, Message(code.status()));
    return ExitCodeOf(code.status());
  }
  return *code;
}

}  // namespace

const std::vector<Verb>& AllVerbs() {
  static const std::vector<Verb> verbs = {
      PackVerb(),    UnpackVerb(),  PushVerb(),   PullVerb(),      SignVerb(),   VerifyVerb(),
      InspectVerb(), RunVerb(),     LoadVerb(),   SaveVerb(),      ImportVerb(), ExportVerb(),
      GcVerb(),      ReleaseVerb(), CachesVerb(), CompletionVerb()};
  return verbs;
}

std::vector<Option> OptionsOf(const Verb& verb) {
  std::vector<Option> options = verb.options;
  options.push_back({.name = "help", .help = "print this help"});
  return options;
}

std::string ProgramHelp() {
  std::string help = fmt::format("{}\nUsage: cachewarm VERB [OPTIONS] ...\n\n", kAbout);
  for (const Verb& verb : AllVerbs()) {
    help += fmt::format("  {:<12} {}\n", verb.name, verb.summary);
  }
  help +=
      "\nBUNDLE is oci://host[:port]/path/name or layout:///directory/name, followed by :tag or\n"
      "@sha256:hex to select one bundle of that name.\n\n"
      "\"cachewarm VERB --help\" describes a verb, \"cachewarm --version\" prints the version.\n"
      "Exit codes: 0 success, 1 failure, 2 usage error, 3 bundle damaged or not signed by --key,\n"
      "4 bundle or pod not found, 5 nothing to load or save, 130 interrupted.\n";
  return help;
}

std::string VerbHelp(const Verb& verb) {
  std::string help = fmt::format("Usage: cachewarm {}{}{} [OPTIONS]{}\n\n{}.\n\n{}\nOptions:\n",
                                 verb.name, verb.operands.empty() ? "" : " ", verb.operands,
                                 verb.takes_rest ? " -- COMMAND ..." : "", verb.summary, verb.text);
  for (const Option& option : OptionsOf(verb)) {
    help += OptionLine(option);
  }
  return help;
}

int RunProgram(std::span<const std::string> words, Console& console) {
  if (words.empty() || words[0] == "--help" || words[0] == "help") {
    console.out << ProgramHelp();
    return words.empty() ? kUsage : kOk;
  }
  if (words[0] == "--version") {
    console.out << "cachewarm " << CACHEWARM_VERSION << '\n';
    return kOk;
  }
  const auto& verbs = AllVerbs();
  const auto verb = std::find_if(verbs.begin(), verbs.end(),
                                 [&](const Verb& each) { return each.name == words[0]; });
  if (verb == verbs.end()) {
    return ReportUsageError(console, fmt::format("unknown verb \"{}\"", words[0]), "");
  }
  return RunVerb(*verb, words.subspan(1), console);
}

}  // namespace cachewarm::cli
