// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"
#include "cli/reference.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/signature/signature.h"
#include "lib/codec/json_value.h"

namespace cachewarm::cli {
namespace {

absl::StatusOr<int> Sign(const Arguments& arguments, Console& console) {
  const std::string file = arguments.Value("key");
  if (file.empty()) {
    return UsageError("--key FILE: required; the private key that signs the bundle");
  }
  CW_ASSIGN_OR_RETURN(const bundle::PrivateKey key, bundle::ReadPrivateKey(file));
  CW_ASSIGN_OR_RETURN(const OpenedReference target,
                      OpenReference(arguments.positionals()[0], arguments, console));
  CW_ASSIGN_OR_RETURN(const Digest digest, target.Resolve(console.stop));
  CW_ASSIGN_OR_RETURN(const bool added, bundle::Sign(target.place(), digest, key, console.stop));
  const std::string name = fmt::format("{}@{}", target.reference.ToString(), digest.ToString());
  if (arguments.Has("json")) {
    PrintJson(console, {{"bundle", name}, {"digest", digest.ToString()}, {"added", added}});
  } else {
    console.out << name << '\n';
    console.err << (added ? "signed\n" : "already signed with this key\n");
  }
  return kOk;
}

}  // namespace

Verb SignVerb() {
  return {
      .name = "sign",
      .operands = "BUNDLE",
      .summary = "Sign a bundle in the format of cosign",
      .text =
          "Stores the signature next to the bundle; the digest stays the same. Signatures are\n"
          "checked by verify, pull, push and unpack with --key, by agents with the setting\n"
          "signature.publicKeyFile, and by cosign, which requires an unencrypted ECDSA P-256\n"
          "key:\n\n"
          "  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem\n"
          "  openssl pkey -in key.pem -pubout -out key.pub\n"
          "  cachewarm sign oci://registry.example.com/warm/team/llama:k-1f... --key key.pem\n"
          "  cosign verify --key key.pub --insecure-ignore-tlog \\\n"
          "      registry.example.com/warm/team/llama@sha256:...\n\n"
          "Signatures made by `cosign sign --key` are also accepted (cosign 2.6 and newer, ECDSA\n"
          "P-256).\n",
      .options = {{.name = "key",
                   .value = "FILE",
                   .help = "PEM file of the private key (required)"},
                  {.name = "json", .help = "print the result as a JSON object"}},
      .groups = {StoreOptionList()},
      .run = Sign};
}

}  // namespace cachewarm::cli
