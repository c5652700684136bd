// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"
#include "cli/limits.h"
#include "cli/reference.h"
#include "cli/signature.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/transfer.h"
#include "lib/codec/json_value.h"

namespace cachewarm::cli {
namespace {

absl::StatusOr<int> Verify(const Arguments& arguments, Console& console) {
  CW_ASSIGN_OR_RETURN(const OpenedBundle opened,
                      OpenBundle(arguments.positionals()[0], arguments, console));
  const bundle::Bundle& found = opened.bundle;
  {
    Progress progress(console, "verifying", arguments.Has("quiet"));
    CW_RETURN_IF_ERROR(bundle::Verify(
        opened.source.place(), found,
        {.on_progress = [&](int64_t done, int64_t total) { progress.Show(done, total); },
         .limits = LimitsOf(arguments)},
        console.stop));
  }
  if (arguments.Has("json")) {
    PrintJson(console, {{"digest", found.digest.ToString()},
                        {"files", found.config.entries.size()},
                        {"bytes", bundle::PackedBytes(found.manifest)},
                        {"intact", true},
                        {"signed", !arguments.Value("key").empty()}});
  } else {
    console.out << fmt::format("{}: {} files, {}: intact{}\n", found.digest.ToString(),
                               found.config.entries.size(),
                               FormatBytes(bundle::PackedBytes(found.manifest)),
                               arguments.Value("key").empty() ? "" : ", signed");
  }
  return kOk;
}

}  // namespace

Verb VerifyVerb() {
  return {
      .name = "verify",
      .operands = "BUNDLE",
      .summary = "Read a bundle and verify every byte",
      .text =
          "Compares manifest, config, layers, frames and files with their sha256, and checks\n"
          "the limits that nodes apply when unpacking. Writes nothing. Exit code 3 means that the\n"
          "bundle is damaged or not signed by a key in the file of --key.\n\n"
          "  cachewarm verify oci://registry.example.com/warm/team/llama@sha256:... --key "
          "key.pub\n",
      .options = {kPublicKeyOption,
                  {.name = "json", .help = "print the result as a JSON object"},
                  {.name = "quiet", .help = "do not print progress"}},
      .groups = {LimitOptionList(), StoreOptionList()},
      .run = Verify};
}

}  // namespace cachewarm::cli
