// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "cli/commands/commands.h"
#include "cli/limits.h"
#include "cli/reference.h"
#include "cli/signature.h"
#include "cli/tree.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/transfer.h"
#include "lib/codec/json_value.h"

namespace cachewarm::cli {
namespace {

absl::StatusOr<int> Unpack(const Arguments& arguments, Console& console) {
  CW_ASSIGN_OR_RETURN(const OpenedBundle opened,
                      OpenBundle(arguments.positionals()[0], arguments, console));
  const bundle::Bundle& found = opened.bundle;
  {
    Progress progress(console, "fetching", arguments.Has("quiet"));
    CW_RETURN_IF_ERROR(
        MakeTree(opened.source.place(), found,
                 {.directory = arguments.positionals()[1], .limits = LimitsOf(arguments)}, progress,
                 console.stop));
  }
  if (arguments.Has("json")) {
    PrintJson(console, {{"digest", found.digest.ToString()},
                        {"directory", arguments.positionals()[1]},
                        {"files", found.config.entries.size()},
                        {"bytes", bundle::RawBytes(found.config)}});
  } else {
    console.err << fmt::format("unpacked {} files, {}\n", found.config.entries.size(),
                               FormatBytes(bundle::RawBytes(found.config)));
  }
  return kOk;
}

}  // namespace

Verb UnpackVerb() {
  return {
      .name = "unpack",
      .operands = "BUNDLE DIRECTORY",
      .summary = "Unpack a bundle into a cache directory",
      .text =
          "Verifies every byte. DIRECTORY must not exist or must be empty. It is created in one\n"
          "step when the bundle is complete; after an error it is unchanged.\n\n"
          "  cachewarm unpack layout:///srv/bundles/llama:k-1f... /var/cache/cachewarm\n",
      .options = {kPublicKeyOption,
                  {.name = "json", .help = "print the result as a JSON object"},
                  {.name = "quiet", .help = "do not print progress"}},
      .groups = {LimitOptionList(), StoreOptionList()},
      .run = Unpack};
}

}  // namespace cachewarm::cli
