// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"
#include "lib/caches/describe.h"
#include "lib/codec/json_value.h"

namespace cachewarm::cli {
namespace {

using caches::KindDescription;

codec::Json ToJson(const KindDescription& kind) {
  return {{"name", kind.name},           {"directory", kind.directory},
          {"variables", kind.variables}, {"refusesToCompileWith", kind.strict},
          {"optIn", kind.opt_in},        {"engine", kind.engine},
          {"proof", kind.proof},         {"absolutePaths", kind.absolute_paths},
          {"rewritten", kind.rewritten}, {"hit", kind.hit},
          {"miss", kind.miss},           {"autotune", kind.autotune},
          {"links", kind.links},         {"captured", kind.captured},
          {"staleLocks", kind.batons},   {"skipped", kind.skipped},
          {"versions", kind.versions}};
}

void PrintTable(const std::vector<KindDescription>& kinds, OutputFormat format, Console& console) {
  const bool is_wide = format == OutputFormat::kWide;
  std::vector<Row> rows = {{{"KIND"}, {"DIRECTORY"}, {"DEFAULT"}, {"PROOF"}}};
  if (is_wide) {
    rows[0].insert(rows[0].end() - 1, {{"ENGINE"}, {"VARIABLES"}});
  }
  for (const KindDescription& kind : kinds) {
    Row row = {
        {kind.name}, {kind.directory}, {kind.opt_in.empty() ? "yes" : "opt-in"}, {kind.proof}};
    if (is_wide) {
      row.insert(row.end() - 1,
                 {{kind.engine}, {fmt::format("{}", fmt::join(kind.variables, " "))}});
    }
    rows.push_back(std::move(row));
  }
  console.out << FormatTable(console, rows);
}

void PrintKind(const KindDescription& kind, Console& console) {
  const auto line = [&console](std::string_view name, std::string_view value) {
    console.out << fmt::format("{:<15} {}\n", name, value);
  };
  const auto lines = [&line](std::string_view name, const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      line(&value == &values.front() ? name : "", value);
    }
  };
  line("kind", kind.name);
  line("engine", kind.engine);
  line("directory", fmt::format("{}/{}", api::kMountPath, kind.directory));
  lines("variables", kind.variables);
  lines("refuses with", kind.strict);
  line("selected", kind.opt_in.empty() ? "by default" : "only by name: " + kind.opt_in);
  line("proof", kind.proof);
  line("absolute paths", kind.absolute_paths);
  lines("rewritten", kind.rewritten);
  line("hit reads", kind.hit);
  line("miss writes", kind.miss);
  lines("autotune", kind.autotune);
  line("may be linked", kind.links);
  lines("captured", kind.captured);
  lines("stale locks", kind.batons);
  lines("skipped", kind.skipped);
  lines("engine version", kind.versions);
}

absl::StatusOr<int> Caches(const Arguments& arguments, Console& console) {
  std::vector<KindDescription> kinds = caches::DescribeKinds();
  const std::vector<std::string>& names = arguments.positionals();
  for (const std::string& name : names) {
    if (const absl::Status known = caches::CheckPresetName(name); !known.ok()) {
      return UsageError(Message(known));
    }
  }
  if (!names.empty()) {
    std::erase_if(kinds, [&names](const KindDescription& kind) {
      return std::find(names.begin(), names.end(), kind.name) == names.end();
    });
  }
  const OutputFormat format = OutputFormatOf(arguments);
  if (format == OutputFormat::kJson || format == OutputFormat::kYaml) {
    codec::Json json = codec::Json::array();
    for (const KindDescription& kind : kinds) {
      json.push_back(ToJson(kind));
    }
    PrintDocument(console, format, json);
  } else if (format == OutputFormat::kName) {
    for (const KindDescription& kind : kinds) {
      console.out << kind.name << '\n';
    }
  } else if (names.empty() || format == OutputFormat::kWide) {
    PrintTable(kinds, format, console);
  } else {
    for (const KindDescription& kind : kinds) {
      console.out << (&kind == &kinds.front() ? "" : "\n");
      PrintKind(kind, console);
    }
  }
  return kOk;
}

}  // namespace

Verb CachesVerb() {
  return {
      .name = "caches",
      .operands = "[KIND...]",
      .summary = "List the kinds of compile cache that cachewarm knows",
      .text =
          "Lists the presets of spec.caches and of \"cachewarm run --cache\". With KIND describes\n"
          "that kind of cache: its environment variables, the files that a bundle holds or omits,\n"
          "the files that a hit reads and a miss writes, absolute paths in the files, how the\n"
          "kind was verified, and which files name the version of an engine. In the values of\n"
          "variables, @ stands for the directory of the kind.\n\n"
          "  cachewarm caches\n"
          "  cachewarm caches vllm triton\n"
          "  cachewarm caches -o wide\n",
      .options = {kListOutput},
      .run = Caches,
      .names = "caches -o name"};
}

}  // namespace cachewarm::cli
