// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "cli/collect.h"
#include "cli/commands/commands.h"
#include "cli/facts.h"
#include "cli/reference.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/store/key_tag.h"
#include "lib/bundle/transfer.h"
#include "lib/capture/left_behind.h"
#include "lib/codec/json_value.h"

namespace cachewarm::cli {
namespace {

void Report(const Collection& collection, const bundle::Publication& published,
            const Reference& reference, const Arguments& arguments, Console& console) {
  const std::string name = fmt::format("{}@{}", reference.ToString(), published.digest.ToString());
  if (arguments.Has("json")) {
    PrintJson(console, {{"bundle", name},
                        {"digest", published.digest.ToString()},
                        {"files", published.files},
                        {"bytes", published.bytes},
                        {"newBytes", published.new_bytes},
                        {"rawBytes", published.raw_bytes},
                        {"leftBehind", collection.left_behind},
                        {"unnamed",
                         {{"files", collection.unnamed.files},
                          {"bytes", collection.unnamed.bytes},
                          {"directories", collection.unnamed.directories}}},
                        {"damaged", collection.selection.truncated}});
    return;
  }
  console.out << name << '\n';
  console.err << fmt::format("packed {} files, {} into {}\n", published.files,
                             FormatBytes(published.raw_bytes), FormatBytes(published.bytes));
  if (published.new_bytes < published.bytes) {
    console.err << fmt::format("{} new, the rest already in the store\n",
                               FormatBytes(published.new_bytes));
  }
  for (const auto& [reason, count] : collection.left_behind) {
    console.err << fmt::format("skipped {} files: {}\n", count, reason);
  }
  if (collection.unnamed.files > 0) {
    console.err << fmt::format("not packed, because they match no cache kind: {}\n",
                               capture::ToText(collection.unnamed));
  }
  for (const std::string& damaged : collection.selection.truncated) {
    console.err << fmt::format("skipped truncated file: {}\n", damaged);
  }
}

// Reads the bundle named by --base. It must be in the same repository as the new bundle, because
// the new bundle reuses layers of the old one.
absl::StatusOr<bundle::Bundle> ReadBase(const std::string& text, const OpenedReference& target,
                                        const Arguments& arguments, const Console& console) {
  CW_ASSIGN_OR_RETURN(const OpenedReference base, OpenReference(text, arguments, console));
  if (base.reference.store_url != target.reference.store_url ||
      base.reference.repository != target.reference.repository) {
    return UsageError(fmt::format("--base: {} must be in the repository of the new bundle, {}",
                                  text, target.reference.ToString()));
  }
  CW_ASSIGN_OR_RETURN(const Digest digest, base.Resolve(console.stop));
  return bundle::ReadBundle(base.place(), digest, console.stop);
}

absl::StatusOr<int> Pack(const Arguments& arguments, Console& console) {
  CW_ASSIGN_OR_RETURN(const fs::Dir tree, fs::Dir::Open(arguments.positionals()[0]));
  CW_ASSIGN_OR_RETURN(const OpenedReference target,
                      OpenReference(arguments.positionals()[1], arguments, console));
  if (!target.reference.digest.empty()) {
    return UsageError(
        "BUNDLE: use a :tag or none; the digest of a new bundle follows from its contents");
  }
  CW_ASSIGN_OR_RETURN(Collection collection, CollectTree(tree, caches::CacheTable::AllPresets()));
  if (collection.files.empty()) {
    return absl::NotFoundError(fmt::format(
        "{}: no cache files found; the directory must contain inductor/, triton/, vllm/, ... like "
        "/var/cache/cachewarm in a pod",
        tree.name()));
  }
  CW_ASSIGN_OR_RETURN(const Machine machine, FindMachine(arguments));
  const bundle::Facts facts = FactsOf(machine, collection);
  std::optional<bundle::Bundle> base;
  if (const std::string older = arguments.Value("base"); !older.empty()) {
    CW_ASSIGN_OR_RETURN(base, ReadBase(older, target, arguments, console));
  }
  const std::string tag =
      target.reference.tag.empty() ? bundle::KeyTagOf(facts.key) : target.reference.tag;
  CW_ASSIGN_OR_RETURN(
      const bundle::Publication published,
      bundle::Publish(target.place(), std::move(collection.files), facts,
                      {.tag = tag, .pack = {.base = base.has_value() ? &*base : nullptr}},
                      console.stop));
  Report(collection, published, target.reference, arguments, console);
  return kOk;
}

}  // namespace

Verb PackVerb() {
  return {
      .name = "pack",
      .operands = "DIRECTORY BUNDLE",
      .summary = "Pack a cache directory into a bundle",
      .text =
          "DIRECTORY must have the layout of /var/cache/cachewarm in a pod: inductor/, triton/,\n"
          "vllm/, ... Locks, logs, temporary and private files and truncated files are skipped.\n"
          "Prints the full name of the bundle. The same files give the same digest. Without a\n"
          ":tag in BUNDLE the tag is k-<key>. The key identifies the environment that the cache\n"
          "was compiled for: GPU type, CPU class, image, container and number of devices.\n"
          "With --base only changes since an older bundle are packed; nodes that have the older\n"
          "bundle fetch only these.\n\n"
          "  cachewarm pack /var/cache/cachewarm layout:///srv/bundles/llama\n"
          "  cachewarm pack /var/cache/cachewarm layout:///srv/bundles/llama:v2 \\\n"
          "      --base layout:///srv/bundles/llama:v1\n",
      .options = {{.name = "base",
                   .value = "BUNDLE",
                   .help = "older bundle in the same repository; pack only changes since then"},
                  {.name = "json", .help = "print the result as a JSON object"}},
      .groups = {MachineOptionList(), StoreOptionList()},
      .run = Pack};
}

}  // namespace cachewarm::cli
