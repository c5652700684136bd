// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lib/bundle/format.h"
#include "lib/bundle/policy.h"
#include "lib/bundle/referrers/artifact.h"
#include "lib/bundle/referrers/listing.h"
#include "lib/bundle/signature/envelope.h"
#include "lib/bundle/signature/keys.h"
#include "lib/bundle/store/layout/index.h"
#include "lib/bundle/store/registry/auth_file.h"
#include "lib/bundle/store/registry/challenge.h"
#include "lib/bundle/store/registry/referrer_list.h"
#include "lib/bundle/tar.h"
#include "lib/http/text/url.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {
namespace {

// True if `part` is a view into `whole`.
bool IsWithin(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

}  // namespace

void Manifest(std::string_view bytes) {
  const auto parsed = bundle::ParseManifest(bytes);
  if (!parsed.ok()) {
    return;
  }
  const auto text = bundle::WriteManifest(*parsed);
  Require(text.ok(), "a manifest that was read can be written");
  const auto again = bundle::ParseManifest(*text);
  Require(again.ok() && again->config == parsed->config && again->layers == parsed->layers &&
              again->annotations == parsed->annotations,
          "a written manifest reads the same");
}

void Config(std::string_view bytes) {
  const auto parsed = bundle::ParseConfig(bytes);
  if (!parsed.ok()) {
    return;
  }
  for (const bundle::Entry& entry : parsed->entries) {
    Require(bundle::CheckPath(entry.path, {}).ok(), "an accepted path passes the policy");
    Require(entry.bytes >= 0, "an accepted size is not negative");
  }
  const auto text = bundle::WriteConfig(*parsed);
  Require(text.ok(), "a config that was read can be written");
  const auto again = bundle::ParseConfig(*text);
  Require(again.ok() && again->entries == parsed->entries && again->facts == parsed->facts,
          "a written config reads the same");
}

void LayoutIndex(std::string_view bytes) {
  const auto parsed = bundle::ParseIndex(bytes);
  if (!parsed.ok()) {
    return;
  }
  const auto text = bundle::WriteIndex(*parsed);
  Require(text.ok(), "an index that was read can be written");
  const auto again = bundle::ParseIndex(*text);
  Require(again.ok() && again->size() == parsed->size(), "a written index reads the same");
}

void TarMembers(std::string_view bytes) {
  bundle::TarReader reader(bytes);
  // Each member has at least one block of header.
  size_t most = bytes.size() / bundle::kTarBlockBytes + 1;
  while (true) {
    const auto member = reader.Next();
    if (!member.ok() || !member->has_value()) {
      return;
    }
    Require(most-- > 0, "no more members than blocks");
    if (!bundle::CheckMember(**member, {}).ok()) {
      return;
    }
    const auto content = reader.Content();
    if (!content.ok()) {
      return;
    }
    Require(IsWithin(*content, bytes), "the content is a part of the archive");
    Require(static_cast<int64_t>(content->size()) <= (*member)->bytes,
            "no more content than the header says");
  }
}

void RegistryAnswer(std::string_view bytes) {
  if (const auto challenge = bundle::ParseChallenge(bytes); challenge.ok()) {
    const auto url = bundle::TokenUrl(*challenge, "repository:team/llama:pull");
    Require(!url.ok() || http::Url::Parse(*url).ok(), "a token URL is a URL");
  }
  if (const auto token = bundle::ParseToken(bytes); token.ok()) {
    Require(token->find_first_of("\r\n") == std::string::npos, "a token fits into a header line");
  }
  static_cast<void>(bundle::FindCredentials(bytes, "registry.example.com"));
}

void Referrers(std::string_view bytes) {
  constexpr char kType[] = "application/vnd.example.note";
  const auto artifact = bundle::ParseArtifact(bytes);
  if (artifact.ok()) {
    const auto again = bundle::ParseArtifact(*bundle::WriteArtifact(*artifact));
    Require(again.ok() && again->subject == artifact->subject && again->layers == artifact->layers,
            "a written artifact reads the same");
  }
  const auto listed = bundle::ParseListing(bytes, kType);
  if (listed.ok()) {
    const bundle::Descriptor added{.media_type = std::string(bundle::kManifestType),
                                   .digest = DigestOf(bytes)};
    const auto longer = bundle::AddToListing(bytes, added, {.type = kType});
    Require(!longer.ok() || bundle::ParseListing(*longer, kType)->size() > listed->size() ||
                *longer == bytes,
            "a list grows by what is added");
  }
  const std::string url = "https://registry.example.com/v2/team/llama/referrers/x";
  if (const auto next = bundle::NextPage(bytes, url); next.ok() && next->has_value()) {
    Require((*next)->starts_with("https://registry.example.com:443/"), "a list stays on its host");
  }
}

void Signature(std::string_view bytes) {
  const Digest digest = DigestOf("signed");
  static_cast<void>(bundle::PublicKey::Parse(bytes));
  Require(
      !bundle::CheckStatement(
           {.payload_type = "application/vnd.in-toto+json", .payload = std::string(bytes)}, digest)
              .ok() ||
          bytes.find(digest.hex()) != std::string_view::npos,
      "a statement that passes names the digest");
  const auto envelope = bundle::ParseSigstoreBundle(bytes);
  if (!envelope.ok()) {
    return;
  }
  const auto text = bundle::WriteSigstoreBundle(*envelope);
  Require(text.ok(), "a sigstore bundle that was read can be written");
  const auto again = bundle::ParseSigstoreBundle(*text);
  Require(again.ok() && bundle::SignedBytes(*again) == bundle::SignedBytes(*envelope) &&
              again->signature == envelope->signature,
          "a written sigstore bundle reads the same");
}

void Location(std::string_view bytes) {
  if (const auto url = http::Url::Parse(bytes); url.ok()) {
    const auto again = http::Url::Parse(url->ToString());
    Require(again.ok() && again->ToString() == url->ToString(), "a written URL reads the same");
    Require(url->port != 0, "a URL has a port");
  }
  const auto base = http::Url::Parse("https://registry.example.com:5000/v2/team/llama/blobs/x?a=b");
  if (const auto next = http::ResolveLocation(*base, bytes); next.ok()) {
    Require(http::Url::Parse(next->ToString()).ok(), "a location leads to a URL");
  }
}

}  // namespace cachewarm::fuzz
