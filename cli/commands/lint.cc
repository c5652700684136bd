// SPDX-License-Identifier: Apache-2.0
#include "cli/lint/lint.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "cli/cluster/connection.h"
#include "cli/cluster/lint_objects.h"
#include "cli/commands/commands.h"
#include "cli/lint/read_objects.h"
#include "cli/output.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"
#include "lib/fs/file.h"

namespace cachewarm::cli {
namespace {

using codec::Json;
using lint::Finding;
using lint::Rule;
using lint::Severity;

constexpr int64_t kManifestBytesMax = 8 << 20;
constexpr std::array<std::string_view, 3> kFailOn = {"warning", "error", "never"};

Colour ColourOf(Severity severity) {
  return severity == Severity::kError ? Colour::kRed : Colour::kYellow;
}

absl::Status CheckRuleName(const std::string& value) {
  const std::vector<std::string> names = lint::RuleNames();
  if (std::find(names.begin(), names.end(), value) != names.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("unknown rule \"{}\"; {}", value.substr(0, 64),
                  settings::Suggestion(value, names, "--rules lists all rules")));
}

absl::Status CheckFailOn(const std::string& value) {
  const bool known = std::find(kFailOn.begin(), kFailOn.end(), value) != kFailOn.end();
  return known ? absl::OkStatus()
               : absl::InvalidArgumentError(fmt::format(
                     "expected warning, error or never, not \"{}\"", value.substr(0, 64)));
}

Json ToJson(const Rule& rule) {
  return {{"name", rule.name},
          {"severity", Name(rule.severity)},
          {"looksAt", rule.looks_at},
          {"remedy", rule.remedy},
          {"known", rule.known}};
}

Json ToJson(const Finding& finding) {
  return {{"rule", finding.rule->name},         {"severity", Name(finding.rule->severity)},
          {"kind", finding.problem.pod->kind},  {"namespace", finding.problem.pod->ns},
          {"name", finding.problem.pod->name},  {"field", finding.problem.field},
          {"message", finding.problem.message}, {"remedy", finding.rule->remedy},
          {"known", finding.rule->known}};
}

int CountOf(const std::vector<Finding>& findings, Severity severity) {
  return static_cast<int>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& finding) { return finding.rule->severity == severity; }));
}

void PrintRules(Console& console, OutputFormat format) {
  if (format != OutputFormat::kText) {
    Json json = Json::array();
    for (const Rule& rule : lint::AllRules()) {
      json.push_back(ToJson(rule));
    }
    PrintDocument(console, format, json);
    return;
  }
  std::vector<Row> rows = {{{"RULE"}, {"SEVERITY"}, {"KNOWN"}}};
  for (const Rule& rule : lint::AllRules()) {
    rows.push_back({{std::string(rule.name)},
                    {std::string(Name(rule.severity)), ColourOf(rule.severity)},
                    {std::string(rule.known)}});
  }
  console.out << FormatTable(console, rows);
}

void PrintFindings(Console& console, const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    const Severity severity = finding.rule->severity;
    console.out << fmt::format("{}: {}: {} ({})\n  at      {}\n  remedy  {}\n  known   {}\n",
                               Painted(console, ColourOf(severity), Name(severity)),
                               OneLine(finding.problem.pod->Object()),
                               OneLine(finding.problem.message), finding.rule->name,
                               OneLine(finding.problem.field), finding.rule->remedy,
                               finding.rule->known);
  }
}

void PrintResult(Console& console, OutputFormat format, const lint::Input& input,
                 const std::vector<Finding>& findings) {
  const int errors = CountOf(findings, Severity::kError);
  const int warnings = CountOf(findings, Severity::kWarning);
  if (format == OutputFormat::kText) {
    PrintFindings(console, findings);
    console.err << fmt::format("pod templates: {}, errors: {}, warnings: {}\n",
                               input.templates.size(), errors, warnings);
    return;
  }
  Json list = Json::array();
  std::transform(findings.begin(), findings.end(), std::back_inserter(list),
                 [](const Finding& finding) { return ToJson(finding); });
  PrintDocument(console, format,
                {{"findings", std::move(list)},
                 {"errors", errors},
                 {"warnings", warnings},
                 {"podTemplates", input.templates.size()}});
}

absl::Status ReadObjectsOfFile(const std::string& file, lint::Input& input) {
  CW_ASSIGN_OR_RETURN(const std::string text,
                      file == "-" ? fs::ReadAll(fs::Fd(::dup(STDIN_FILENO)), kManifestBytesMax)
                                  : fs::ReadNamedFile(file, kManifestBytesMax));
  const auto documents = codec::ParseYamlStream(text);
  CW_RETURN_IF_ERROR(Annotate(documents.status(), file));
  for (const Json& document : *documents) {
    CW_RETURN_IF_ERROR(
        Annotate(lint::AddObject(document, lint::Scope::kManifest, input).status(), file));
  }
  return absl::OkStatus();
}

absl::StatusOr<lint::Input> ReadInput(const Arguments& arguments, Console& console) {
  lint::Input input;
  input.assumed_cold_seconds = static_cast<double>(
      arguments.Number("cold-start", static_cast<int64_t>(lint::kAssumedColdSeconds)));
  for (const std::string& file : arguments.Values("filename")) {
    CW_RETURN_IF_ERROR(ReadObjectsOfFile(file, input));
  }
  std::vector<NamedObject> objects;
  for (const std::string& text : arguments.positionals()) {
    CW_ASSIGN_OR_RETURN(NamedObject object, ParseNamedObject(text));
    objects.push_back(std::move(object));
  }
  if (objects.empty()) {
    return input;
  }
  CW_ASSIGN_OR_RETURN(const Connection connection, Connect(arguments, console));
  const LintSource source{
      .client = *connection.client,
      .clock = console.clock,
      .ns = connection.ns,
      .on_note = [&console](const std::string& note) { console.err << "note: " << note << '\n'; }};
  CW_RETURN_IF_ERROR(ReadLintObjects(source, objects, input, console.stop));
  return input;
}

int ExitCodeFor(const std::vector<Finding>& findings, std::string_view fail_on) {
  const bool fails = std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return fail_on == "warning" ||
           (fail_on == "error" && finding.rule->severity == Severity::kError);
  });
  return fails ? kFailed : kOk;
}

absl::StatusOr<int> Lint(const Arguments& arguments, Console& console) {
  const OutputFormat format = OutputFormatOf(arguments);
  if (arguments.Has("rules")) {
    PrintRules(console, format);
    return kOk;
  }
  if (arguments.positionals().empty() && !arguments.Has("filename")) {
    return UsageError("expected KIND/NAME, such as deploy/llama, or --filename FILE");
  }
  CW_ASSIGN_OR_RETURN(const lint::Input input, ReadInput(arguments, console));
  const std::vector<std::string> skip = arguments.Values("skip");
  const std::vector<Finding> findings = lint::Lint(input, {skip.begin(), skip.end()});
  PrintResult(console, format, input, findings);
  return ExitCodeFor(findings, arguments.Value("fail-on", "warning"));
}

constexpr std::array<Option, 6> kLintOptions = {{
    {.name = "filename",
     .value = "FILE",
     .help = "manifest with Kubernetes objects, in YAML or JSON; - is standard input",
     .repeats = true,
     .letter = 'f'},
    kDocumentOutput,
    {.name = "skip",
     .value = "RULE",
     .help = "do not check this rule",
     .repeats = true,
     .check = CheckRuleName},
    {.name = "fail-on",
     .value = "SEVERITY",
     .help = "findings for which the exit code is 1: warning, error or never (default: warning)",
     .check = CheckFailOn},
    {.name = "cold-start",
     .value = "SECONDS",
     .help = "start without a cache, where no CacheWarmup has measured one (default 300)",
     .range = Range{1, 86'400}},
    {.name = "rules", .help = "list the rules and check nothing"},
}};

}  // namespace

Verb LintVerb() {
  return {
      .name = "lint",
      .operands = "[KIND/NAME...]",
      .summary = "Warn about pod templates whose cache would not be used",
      .text =
          "Checks pod templates before the first start: values that differ between pods and are\n"
          "part of an engine's key, caches on volumes that end with the pod, probes that end a\n"
          "start without a cache, settings with which an engine hangs. Each finding names the\n"
          "field, the remedy, and the issues that report the problem. docs/reference/lint.md\n"
          "describes the rules.\n\n"
          "KIND/NAME is an object of the cluster with a pod template, a pod or a CacheWarmup.\n"
          "Reading it needs get on its kind, and list on services and cachewarmups in the\n"
          "namespace; without these two, a note names the rule that is not checked. With -f,\n"
          "checks the manifests in files and needs no cluster; pod templates that neither request\n"
          "an accelerator nor name an engine are not checked.\n\n"
          "  cachewarm lint deploy/llama sts/qwen -n models\n"
          "  helm template ./chart | cachewarm lint -f -\n"
          "  cachewarm lint -f model.yaml --skip unpinned-image --fail-on error\n\n"
          "Exit codes: 0 no finding, 1 findings, 2 usage error, 4 object not found. A cluster or\n"
          "file that cannot be read is exit code 1 without a result on standard output.\n",
      .options = {},
      .groups = {kLintOptions, ClusterOptionList(), NamespaceOptionList()},
      .run = Lint,
      .names = "status -o name"};
}

}  // namespace cachewarm::cli
