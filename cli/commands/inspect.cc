// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "cli/commands/commands.h"
#include "cli/reference.h"
#include "cli/signature.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/base/status.h"
#include "lib/bundle/transfer.h"
#include "lib/codec/json_value.h"

namespace cachewarm::cli {
namespace {

struct KindSum {
  int64_t files = 0;
  int64_t bytes = 0;
};

std::map<std::string, KindSum> SumsOf(const bundle::Config& config) {
  std::map<std::string, KindSum> sums;
  for (const bundle::Entry& entry : config.entries) {
    KindSum& sum = sums[entry.kind];
    ++sum.files;
    sum.bytes += entry.bytes;
  }
  return sums;
}

codec::Json ToJson(const bundle::Bundle& found, bool with_entries) {
  const bundle::Facts& facts = found.config.facts;
  codec::Json json = {
      {"digest", found.digest.ToString()},
      {"bytes", bundle::PackedBytes(found.manifest)},
      {"rawBytes", bundle::RawBytes(found.config)},
      {"files", found.config.entries.size()},
      {"key", facts.key},
      {"factors", facts.factors},
      {"node", facts.node},
      {"engines", facts.engines},
      {"requires",
       {{"cpuClass", facts.requires_cpu_class}, {"gpuArchitectures", facts.gpu_architectures}}},
      {"compileMilliseconds", facts.compile_milliseconds}};
  for (const auto& [kind, sum] : SumsOf(found.config)) {
    json["caches"][kind] = {{"files", sum.files}, {"bytes", sum.bytes}};
  }
  for (const bundle::Entry& entry : found.config.entries) {
    if (with_entries) {
      json["entries"].push_back({{"path", entry.path},
                                 {"kind", entry.kind},
                                 {"size", entry.bytes},
                                 {"sha256", entry.digest.hex()}});
    }
  }
  return json;
}

void PrintText(const bundle::Bundle& found, bool with_entries, Console& console) {
  const bundle::Facts& facts = found.config.facts;
  const auto line = [&console](std::string_view name, const std::string& value) {
    console.out << fmt::format("{:<14} {}\n", name, value.empty() ? "-" : value);
  };
  line("digest", found.digest.ToString());
  line(
      "size",
      fmt::format("{} compressed, {} in {} files", FormatBytes(bundle::PackedBytes(found.manifest)),
                  FormatBytes(bundle::RawBytes(found.config)), found.config.entries.size()));
  line("key", facts.key);
  for (const auto& [name, value] : facts.factors) {
    line("  " + name, value);
  }
  line("CPU class", facts.requires_cpu_class ? "required: contains native host code" : "any");
  line("GPU code for", fmt::format("{}", fmt::join(facts.gpu_architectures, " ")));
  line("compile time", FormatDuration(Duration(facts.compile_milliseconds)));
  for (const auto& [name, value] : facts.engines) {
    line("engine", fmt::format("{} {}", name, value));
  }
  for (const auto& [kind, sum] : SumsOf(found.config)) {
    line("cache", fmt::format("{}: {} files, {}", kind, sum.files, FormatBytes(sum.bytes)));
  }
  for (const bundle::Entry& entry : found.config.entries) {
    if (with_entries) {
      console.out << fmt::format("{} {:>12} {}\n", entry.digest.Short(), entry.bytes, entry.path);
    }
  }
}

absl::StatusOr<int> Inspect(const Arguments& arguments, Console& console) {
  CW_ASSIGN_OR_RETURN(const OpenedBundle opened,
                      OpenBundle(arguments.positionals()[0], arguments, console));
  if (arguments.Has("json")) {
    PrintJson(console, ToJson(opened.bundle, arguments.Has("entries")));
  } else {
    PrintText(opened.bundle, arguments.Has("entries"), console);
  }
  return kOk;
}

}  // namespace

Verb InspectVerb() {
  return {.name = "inspect",
          .operands = "BUNDLE",
          .summary = "Show the contents of a bundle and the nodes that it fits",
          .text =
              "Prints digest, size, key and its factors, required CPU class and GPU code,\n"
              "engines and caches. Downloads only manifest and config, a few kilobytes.\n\n"
              "  cachewarm inspect layout:///srv/bundles/llama:k-1f... --entries\n",
          .options = {{.name = "entries", .help = "also list every file"},
                      {.name = "json", .help = "print the result as a JSON object"}},
          .groups = {StoreOptionList()},
          .run = Inspect};
}

}  // namespace cachewarm::cli
