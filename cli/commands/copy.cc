// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "cli/commands/commands.h"
#include "cli/reference.h"
#include "cli/signature.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/signature/signature.h"
#include "lib/bundle/transfer.h"
#include "lib/codec/json_value.h"

namespace cachewarm::cli {
namespace {

struct Copied {
  bundle::Bundle bundle;
  int signatures = 0;
  bundle::CopyReport report;
};

absl::StatusOr<Copied> CopyBetween(const OpenedReference& source, const OpenedReference& target,
                                   const Arguments& arguments, Console& console) {
  if (!target.reference.digest.empty()) {
    return UsageError("TARGET: must not have a digest; give a :tag or nothing");
  }
  Copied copied;
  CW_ASSIGN_OR_RETURN(const Digest digest, source.Resolve(console.stop));
  CW_RETURN_IF_ERROR(CheckKey(source, digest, arguments.Value("key"), console.stop));
  CW_ASSIGN_OR_RETURN(copied.bundle, bundle::ReadBundle(source.place(), digest, console.stop));
  const std::string& tag =
      target.reference.tag.empty() ? source.reference.tag : target.reference.tag;
  CW_ASSIGN_OR_RETURN(copied.report, bundle::CopyBundle(source.place(), target.place(),
                                                        copied.bundle, tag, console.stop));
  const auto signatures =
      bundle::CopySignatures(source.place(), target.place(), digest, console.stop);
  CW_RETURN_IF_ERROR(
      Annotate(signatures.status(), "the bundle was copied, but its signatures were not"));
  copied.signatures = *signatures;
  return copied;
}

absl::StatusOr<int> CopyVerb(const Arguments& arguments, Console& console, bool verify) {
  CW_ASSIGN_OR_RETURN(const OpenedReference source,
                      OpenReference(arguments.positionals()[0], arguments, console));
  CW_ASSIGN_OR_RETURN(OpenedReference target,
                      OpenReference(arguments.positionals()[1], arguments, console));
  if (target.reference.store_url == source.reference.store_url) {
    target.store = source.store;  // within one store, blobs are mounted, not copied
  }
  CW_ASSIGN_OR_RETURN(const Copied copied, CopyBetween(source, target, arguments, console));
  if (verify) {
    CW_RETURN_IF_ERROR(bundle::Verify(target.place(), copied.bundle, {}, console.stop));
  }
  const std::string digest = copied.bundle.digest.ToString();
  const std::string name = fmt::format("{}@{}", target.reference.ToString(), digest);
  if (arguments.Has("json")) {
    PrintJson(console, {{"bundle", name},
                        {"digest", digest},
                        {"copiedBytes", copied.report.copied_bytes},
                        {"presentBytes", copied.report.present_bytes},
                        {"copiedSignatures", copied.signatures}});
    return kOk;
  }
  console.out << name << '\n';
  console.err << fmt::format("copied {}, {} already present\n",
                             FormatBytes(copied.report.copied_bytes),
                             FormatBytes(copied.report.present_bytes));
  if (copied.signatures > 0) {
    console.err << fmt::format("copied {} signatures\n", copied.signatures);
  }
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
  verb.options = {kPublicKeyOption, {.name = "json", .help = "print the result as a JSON object"}};
  verb.groups = {StoreOptionList()};
  return verb;
}

}  // namespace

Verb PushVerb() {
  return Described(
      {.name = "push",
       .summary = "Copy a bundle to a registry",
       .text = "Copies the bundle SOURCE with its signatures to TARGET. Sends only the data that\n"
               "TARGET does not have yet. The digest stays the same; without a :tag in TARGET the\n"
               "tag of SOURCE is used.\n\n"
               "  cachewarm push layout:///srv/bundles/llama:k-1f... \\\n"
               "      oci://registry.example.com/warm/team/llama\n",
       .run = Push});
}

Verb PullVerb() {
  return Described({.name = "pull",
                    .summary = "Copy a bundle from a registry and verify the copy",
                    .text =
                        "Like push, but afterwards reads the copy and verifies every byte.\n\n"
                        "  cachewarm pull oci://registry.example.com/warm/team/llama:k-1f... \\\n"
                        "      layout:///srv/bundles/llama\n",
                    .run = Pull});
}

}  // namespace cachewarm::cli
