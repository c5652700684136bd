// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "cli/commands/commands.h"
#include "cli/reference.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/transfer.h"
#include "lib/codec/json_value.h"

namespace cachewarm::cli {
namespace {

struct Copied {
  Digest digest;
  bundle::CopyReport report;
};

absl::StatusOr<Copied> CopyBetween(const OpenedReference& source, const OpenedReference& target,
                                   bool verify, Console& console) {
  if (!target.reference.digest.empty()) {
    return absl::InvalidArgumentError("the target takes a :tag or nothing, not a digest");
  }
  Copied copied;
  CW_ASSIGN_OR_RETURN(copied.digest, source.Resolve(console.stop));
  CW_ASSIGN_OR_RETURN(const bundle::Bundle found,
                      bundle::ReadBundle(source.place(), copied.digest, console.stop));
  const std::string& tag =
      target.reference.tag.empty() ? source.reference.tag : target.reference.tag;
  CW_ASSIGN_OR_RETURN(copied.report,
                      bundle::CopyBundle(source.place(), target.place(), found, tag, console.stop));
  if (verify) {
    CW_RETURN_IF_ERROR(bundle::Verify(target.place(), found, {}, console.stop));
  }
  return copied;
}

absl::StatusOr<int> CopyVerb(const Arguments& arguments, Console& console, bool verify) {
  CW_ASSIGN_OR_RETURN(const OpenedReference source,
                      OpenReference(arguments.positionals()[0], arguments, console.clock));
  CW_ASSIGN_OR_RETURN(OpenedReference target,
                      OpenReference(arguments.positionals()[1], arguments, console.clock));
  if (target.reference.store_url == source.reference.store_url) {
    target.store = source.store;  // one store can mount what it has
  }
  CW_ASSIGN_OR_RETURN(const Copied copied, CopyBetween(source, target, verify, console));
  const std::string name =
      fmt::format("{}@{}", target.reference.ToString(), copied.digest.ToString());
  if (arguments.Has("json")) {
    PrintJson(console, {{"bundle", name},
                        {"digest", copied.digest.ToString()},
                        {"copiedBytes", copied.report.copied_bytes},
                        {"presentBytes", copied.report.present_bytes}});
    return kOk;
  }
  console.out << name << '\n';
  console.err << fmt::format("copied {}, {} were there already\n",
                             FormatBytes(copied.report.copied_bytes),
                             FormatBytes(copied.report.present_bytes));
  return kOk;
}

absl::StatusOr<int> Push(const Arguments& arguments, Console& console) {
  return CopyVerb(arguments, console, false);
}

absl::StatusOr<int> Pull(const Arguments& arguments, Console& console) {
  return CopyVerb(arguments, console, true);
}

Verb Described(Verb verb) {
  verb.operands = "SOURCE TARGET";
  verb.options = {{.name = "json", .help = "the result as one JSON object"}};
  verb.options.insert(verb.options.end(), StoreOptionList().begin(), StoreOptionList().end());
  return verb;
}

}  // namespace

Verb PushVerb() {
  return Described(
      {.name = "push",
       .summary = "Copy a bundle into a registry",
       .text = "SOURCE and TARGET are bundles; of the target only what it lacks is sent. It gets\n"
               "the source's tag unless it names one. The digest stays the same.\n\n"
               "  cachewarm push layout:///srv/bundles/llama:k-1f... \\\n"
               "      oci://registry.example.com/warm/team/llama\n",
       .run = Push});
}

Verb PullVerb() {
  return Described(
      {.name = "pull",
       .summary = "Copy a bundle out of a registry and verify all of it",
       .text = "As push, the other way; afterwards every byte of the copy is read and checked.\n\n"
               "  cachewarm pull oci://registry.example.com/warm/team/llama:k-1f... \\\n"
               "      layout:///srv/bundles/llama\n",
       .run = Pull});
}

}  // namespace cachewarm::cli
