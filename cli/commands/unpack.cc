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
  CW_ASSIGN_OR_RETURN(const bundle::Limits limits, LimitsOf(arguments));
  CW_ASSIGN_OR_RETURN(const OpenedReference source,
                      OpenReference(arguments.positionals()[0], arguments, console));
  CW_ASSIGN_OR_RETURN(const Digest digest, source.Resolve(console.stop));
  CW_RETURN_IF_ERROR(CheckKey(source, digest, arguments.Value("key"), console.stop));
  CW_ASSIGN_OR_RETURN(const bundle::Bundle found,
                      bundle::ReadBundle(source.place(), digest, console.stop));
  {
    Progress progress(console, "fetching", arguments.Has("quiet"));
    CW_RETURN_IF_ERROR(MakeTree(source.place(), found,
                                {.directory = arguments.positionals()[1], .limits = limits},
                                progress, console.stop));
  }
  if (arguments.Has("json")) {
    PrintJson(console, {{"digest", digest.ToString()},
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
  Verb verb{
      .name = "unpack",
      .operands = "BUNDLE DIRECTORY",
      .summary = "Make a cache directory of a bundle",
      .text =
          "Every byte is verified on its way. DIRECTORY must not exist or be empty; it appears\n"
          "when all of it is there, or not at all.\n\n"
          "  cachewarm unpack layout:///srv/bundles/llama:k-1f... /var/cache/cachewarm\n",
      .options = {PublicKeyOption(),
                  {.name = "json", .help = "the result as one JSON object"},
                  {.name = "quiet", .help = "no progress line"}},
      .run = Unpack};
  verb.options.insert(verb.options.end(), LimitOptionList().begin(), LimitOptionList().end());
  verb.options.insert(verb.options.end(), StoreOptionList().begin(), StoreOptionList().end());
  return verb;
}

}  // namespace cachewarm::cli
