// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/reference/pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "agent/config.h"
#include "agent/metrics.h"
#include "cli/lint/rules.h"
#include "cli/verbs.h"
#include "lib/api/vocabulary.h"
#include "lib/caches/describe.h"
#include "operator/config.h"
#include "operator/metrics.h"
#include "tests/golden/reference/plan_tables.h"

namespace cachewarm::reference {
namespace {

constexpr std::string_view kGenerated =
    "<!-- Generated from the code by `make golden`; `make unit` compares. Do not edit. -->\n";

// A row of a Markdown table; "|" inside a cell would end it.
std::string Row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (std::string cell : cells) {
    for (size_t at = cell.find('|'); at != std::string::npos; at = cell.find('|', at + 2)) {
      cell.insert(at, "\\");
    }
    row += " " + cell + " |";
  }
  return row + "\n";
}

std::string Head(const std::vector<std::string>& titles) {
  return Row(titles) + Row(std::vector<std::string>(titles.size(), "---"));
}

std::string Code(std::string_view text) {
  return text.empty() ? "" : fmt::format("`{}`", text);
}

std::string Codes(const std::vector<std::string>& texts) {
  std::vector<std::string> codes;
  codes.reserve(texts.size());
  for (const std::string& text : texts) {
    codes.push_back(Code(text));
  }
  return fmt::format("{}", fmt::join(codes, ", "));
}

// Returns the sentence with the characters escaped that Markdown would read as emphasis.
std::string Escaped(std::string_view sentence) {
  std::string out;
  for (const char c : sentence) {
    out += c == '*' || c == '_' ? fmt::format("\\{}", c) : std::string(1, c);
  }
  return out;
}

std::string SettingsTable(const settings::Table& table) {
  std::string out = Head({"key in the ConfigMap", "flag", "environment", "default", "meaning"});
  for (const settings::Setting& each : table.settings) {
    out += Row({Code(each.key), Code(each.flag), Code(each.Environment()), each.Default(),
                std::string(each.help)});
  }
  return out;
}

std::string SettingsPage() {
  op::Config config;
  agent::CommandLine command;
  return fmt::format(
      "{}# Settings\n\nThe operator and the agent read the same YAML file, the ConfigMap "
      "`cachewarm`. A flag overrides its\nenvironment variable, which overrides the file. A "
      "nested key is written with a dot.\n\n## Operator\n\n{}\n## Agent\n\n{}",
      kGenerated, SettingsTable(op::TableOf(config)), SettingsTable(agent::TableOf(command)));
}

// Records what a program registers; counts nothing.
class Recorder : public metrics::Registry {
 public:
  metrics::Counter& NewCounter(const metrics::MetricSpec& spec) override {
    Add("counter", spec);
    return registry_->NewCounter(spec);
  }
  metrics::Gauge& NewGauge(const metrics::MetricSpec& spec) override {
    Add("gauge", spec);
    return registry_->NewGauge(spec);
  }
  metrics::Histogram& NewHistogram(const metrics::MetricSpec& spec,
                                   std::vector<double> buckets) override {
    Add("histogram", spec);
    return registry_->NewHistogram(spec, std::move(buckets));
  }
  absl::Status status() const override { return registry_->status(); }
  std::string Serialize() const override { return registry_->Serialize(); }

  std::string Table() const {
    std::string out = Head({"metric", "type", "labels", "meaning"});
    for (const auto& [name, row] : rows_) {
      out += row;
    }
    return out;
  }

 private:
  void Add(std::string_view type, const metrics::MetricSpec& spec) {
    rows_[spec.name] =
        Row({Code(spec.name), std::string(type),
             spec.labels.empty() ? "" : Code(fmt::format("{}", fmt::join(spec.labels, ", "))),
             spec.help});
  }

  std::unique_ptr<metrics::Registry> registry_ = metrics::MakeRegistry();
  std::map<std::string, std::string> rows_;
};

std::string MetricsPage() {
  Recorder of_operator;
  op::MakeMetrics(of_operator, "");
  Recorder of_agent;
  const agent::Metrics metrics(of_agent, "");
  return fmt::format(
      "{}# Metrics\n\nBoth programs serve `/metrics` in the Prometheus text format on "
      "`listen`, by default port 8080.\n[monitoring.md](../monitoring.md) shows how to scrape "
      "them, and has the queries for hit rate and saved time.\n\nA metric has at most {} series, "
      "and the totals of starts 20000. Further ones are counted together in one series,\nwhose "
      "labels are all `other`, or, if they are totals, not served. "
      "`cachewarm_metrics_overflow_total{{metric}}`\ncounts their observations.\n\n## "
      "Operator\n\n{}\n## Agent\n\n{}",
      kGenerated, metrics::MetricSpec{}.series_max, of_operator.Table(), of_agent.Table());
}

std::string ReasonsPage() {
  std::string out = fmt::format(
      "{}# Reasons\n\nThe `reason` of conditions, events, annotations and metric labels.\n\n{}",
      kGenerated, Head({"reason", "place", "meaning"}));
  for (const api::ReasonMeaning& each : api::ReasonMeanings()) {
    out += Row({Code(each.reason), std::string(each.place), std::string(each.meaning)});
  }
  return out;
}

std::string NamesPage() {
  std::string out = fmt::format(
      "{}# Annotations, labels, gates and taints\n\nThe annotations that override the defaults "
      "of a workload are in [annotations.md](../annotations.md).\n\n{}",
      kGenerated, Head({"name", "kind", "object", "written by", "meaning"}));
  for (const api::NameMeaning& each : api::NameMeanings()) {
    out += Row({Code(each.name), std::string(each.kind), std::string(each.object),
                std::string(each.writer), std::string(each.meaning)});
  }
  return out;
}

std::string CachesPage() {
  std::string out = fmt::format(
      "{}# Cache kinds\n\nThe presets of `spec.caches` and of `cachewarm run --cache`. cachewarm "
      "sets "
      "the variables in the\ncompiling container, unless its `env` already names them; `@` is the "
      "directory below\n`/var/cache/cachewarm`. A preset marked as opt-in is selected only by "
      "name.\n\n{}",
      kGenerated, Head({"preset", "directory", "variables"}));
  const std::vector<caches::KindDescription> kinds = caches::DescribeKinds();
  for (const caches::KindDescription& kind : kinds) {
    out += Row({Code(kind.name) + (kind.opt_in.empty() ? "" : " (opt-in)"), Code(kind.directory),
                Codes(kind.variables)});
  }
  out +=
      "\nLocks, temporary files and logs are never captured. A file that no row names stays behind "
      "and is\nreported. Autotune results of two generations are never mixed, and pods of a group "
      "get "
      "none\n([0028](../design/0028-autotune-results-of-one-generation.md)).\n";
  for (const caches::KindDescription& kind : kinds) {
    out += fmt::format("\n## {}\n\n", kind.name);
    if (!kind.opt_in.empty()) {
      out += fmt::format("- **Opt-in**: {}\n", Escaped(kind.opt_in));
    }
    out += fmt::format(
        "- **Engine**: {}\n- **Proof**: {}\n- **Absolute paths**: {}\n- **A hit reads**: {}\n"
        "- **A miss writes**: {}\n- **May be linked**: {}\n- **Captured**: {}\n",
        Escaped(kind.engine), Escaped(kind.proof), Escaped(kind.absolute_paths), Escaped(kind.hit),
        Escaped(kind.miss), Escaped(kind.links), Codes(kind.captured));
    if (!kind.strict.empty()) {
      out += fmt::format("- **Refuses to compile with**: {}\n", Codes(kind.strict));
    }
    if (!kind.rewritten.empty()) {
      out += fmt::format("- **Rewritten for another directory**: {}\n", Codes(kind.rewritten));
    }
    if (!kind.autotune.empty()) {
      out += fmt::format("- **Autotune results**: {}\n", Codes(kind.autotune));
    }
    for (const std::string& version : kind.versions) {
      out += fmt::format("- **Version of an engine**: {}\n", Code(version));
    }
    if (!kind.batons.empty()) {
      out += fmt::format("- **Locks removed before a start**: {}\n", Codes(kind.batons));
    }
    if (!kind.skipped.empty()) {
      out += fmt::format("- **Never captured**: {}\n", Codes(kind.skipped));
    }
  }
  return out;
}

std::string LintPage() {
  std::string out = fmt::format(
      "{}# Rules of cachewarm lint\n\n`cachewarm lint` checks the containers that request an "
      "accelerator or name an engine. Without a\nCacheWarmup that has measured cold starts, a "
      "cold start of {:.0f} s is assumed: published cold starts\ntake 64 s "
      "(0.5B parameters, NovaSky-AI/SkyRL#2167) to 870 s (235B, NVIDIA/nvcf).\n",
      kGenerated, lint::kAssumedColdSeconds);
  for (const lint::Rule& rule : lint::AllRules()) {
    out += fmt::format(
        "\n## {}\n\n- **Severity**: {}\n- **Looks at**: {}\n- **Remedy**: {}\n- **Known**: {}\n",
        rule.name, Name(rule.severity), Escaped(rule.looks_at), Escaped(rule.remedy),
        Escaped(rule.known));
  }
  return out;
}

std::string CommandsPage() {
  std::string out = fmt::format("{}# cachewarm, the command line\n\n```\n{}```\n", kGenerated,
                                cli::ProgramHelp());
  for (const cli::Verb& verb : cli::AllVerbs()) {
    out += fmt::format("\n## cachewarm {}\n\n```\n{}```\n", verb.name, cli::VerbHelp(verb));
  }
  return out;
}

}  // namespace

std::map<std::string, std::string> Pages() {
  return {{"settings.md", SettingsPage()},
          {"metrics.md", MetricsPage()},
          {"reasons.md", ReasonsPage()},
          {"names.md", NamesPage()},
          {"caches.md", CachesPage()},
          {"commands.md", CommandsPage()},
          {"lint.md", LintPage()},
          {"gates.md", std::string(kGenerated) + GatesTable()},
          {"builds.md", std::string(kGenerated) + BuildsTable()}};
}

}  // namespace cachewarm::reference
