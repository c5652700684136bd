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
    "registry or in an image layout directory. In a cluster, it shows the state of caches, "
    "explains\n"
    "why a pod compiled, checks pod templates and releases pods that are held for their cache. "
    "The\n"
    "program is also a kubectl plugin: kubectl cachewarm VERB.\n";

std::vector<std::string> WordsOf(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

std::string OptionLine(const Option& option) {
  constexpr size_t kHelpColumn = 31;
  const std::string letter = option.letter == 0 ? "" : fmt::format("-{}, ", option.letter);
  const std::string value = option.value.empty() ? "" : fmt::format(" {}", option.value);
  const std::string help = fmt::format("{}{}", option.help, option.repeats ? " (repeatable)" : "");
  return fmt::format("  {:<28} {}\n", fmt::format("{}--{}{}", letter, option.name, value),
                     settings::Wrapped(help, kHelpColumn));
}

// Prints the error of `program`, for example "cachewarm pack". Returns its exit code.
int ReportError(Console& console, std::string_view program, const absl::Status& status) {
  const ExitCode code = ExitCodeOf(status);
  console.err << fmt::format("{}: {}\n", program, Message(status));
  if (code == kUsage) {
    console.err << fmt::format("See \"{} --help\".\n", program);
  }
  return code;
}

absl::Status CheckOperands(const Verb& verb, const Arguments& arguments) {
  const std::vector<std::string> operands = WordsOf(verb.operands);
  const auto required =
      std::count_if(operands.begin(), operands.end(),
                    [](const std::string& operand) { return !operand.starts_with('['); });
  const size_t given = arguments.positionals().size();
  const bool is_list = verb.operands.ends_with("...]");
  if (given < static_cast<size_t>(required) || (given > operands.size() && !is_list)) {
    return UsageError(fmt::format("{} takes {}, but {} operands were given", verb.name,
                                  operands.empty() ? "no operand" : verb.operands, given));
  }
  if (verb.takes_rest == arguments.rest().empty()) {
    return UsageError(verb.takes_rest ? "a command is required after --"
                                      : "this verb takes no words after \"--\"");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> RunVerb(const Verb& verb, std::span<const std::string> words,
                            Console& console) {
  const auto arguments = Arguments::Parse(words, OptionsOf(verb));
  if (!arguments.ok()) {
    return UsageError(Message(arguments.status()));
  }
  if (arguments->Has("help")) {
    console.out << VerbHelp(verb);
    return kOk;
  }
  CW_RETURN_IF_ERROR(CheckOperands(verb, *arguments));
  return verb.run(*arguments, console);
}

// Returns the error for a first word that is no verb.
absl::Status UnknownVerb(const std::string& word) {
  std::vector<std::string> names;
  for (const Verb& verb : AllVerbs()) {
    names.emplace_back(verb.name);
  }
  return UsageError(fmt::format("unknown verb \"{}\"; {}", word,
                                settings::Suggestion(word, names, "--help lists all verbs")));
}

}  // namespace

const std::vector<Verb>& AllVerbs() {
  static const std::vector<Verb> verbs = {
      PackVerb(),   UnpackVerb(),  PushVerb(),   PullVerb(),   SignVerb(),
      VerifyVerb(), InspectVerb(), RunVerb(),    LoadVerb(),   SaveVerb(),
      ImportVerb(), ExportVerb(),  GcVerb(),     StatusVerb(), WhyVerb(),
      LintVerb(),   ReleaseVerb(), ReportVerb(), CachesVerb(), CompletionVerb()};
  return verbs;
}

std::vector<Option> OptionsOf(const Verb& verb) {
  std::vector<Option> options = verb.options;
  for (const std::span<const Option> group : verb.groups) {
    options.insert(options.end(), group.begin(), group.end());
  }
  options.push_back({.name = "help", .help = "print this help", .letter = 'h'});
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
      "4 bundle or object not found, 5 nothing to load or save, 130 interrupted. The exit code of\n"
      "\"run\" is that of its command; lint exits with 1 if it has findings.\n";
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
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
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
    return ReportError(console, "cachewarm", UnknownVerb(words[0]));
  }
  const absl::StatusOr<int> code = RunVerb(*verb, words.subspan(1), console);
  return code.ok() ? *code
                   : ReportError(console, fmt::format("cachewarm {}", verb->name), code.status());
}

}  // namespace cachewarm::cli
