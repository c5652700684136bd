// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lib/bundle/format.h"
#include "lib/bundle/policy.h"
#include "lib/bundle/store/layout/index.h"
#include "lib/bundle/store/registry/auth_file.h"
#include "lib/bundle/store/registry/challenge.h"
#include "lib/bundle/tar.h"
#include "lib/http/url.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {
namespace {

// An address within `whole`.
bool LiesIn(std::string_view part, std::string_view whole) {
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
  Promise(text.ok(), "a manifest that was read can be written");
  const auto again = bundle::ParseManifest(*text);
  Promise(again.ok() && again->config == parsed->config && again->layers == parsed->layers &&
              again->annotations == parsed->annotations,
          "a written manifest reads the same");
}

void Config(std::string_view bytes) {
  const auto parsed = bundle::ParseConfig(bytes);
  if (!parsed.ok()) {
    return;
  }
  for (const bundle::Entry& entry : parsed->entries) {
    Promise(bundle::CheckPath(entry.path, {}).ok(), "an accepted path passes the policy");
    Promise(entry.bytes >= 0, "an accepted size is not negative");
  }
  const auto text = bundle::WriteConfig(*parsed);
  Promise(text.ok(), "a config that was read can be written");
  const auto again = bundle::ParseConfig(*text);
  Promise(again.ok() && again->entries == parsed->entries && again->facts == parsed->facts,
          "a written config reads the same");
}

void LayoutIndex(std::string_view bytes) {
  const auto parsed = bundle::ParseIndex(bytes);
  if (!parsed.ok()) {
    return;
  }
  const auto text = bundle::WriteIndex(*parsed);
  Promise(text.ok(), "an index that was read can be written");
  const auto again = bundle::ParseIndex(*text);
  Promise(again.ok() && again->size() == parsed->size(), "a written index reads the same");
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
    Promise(most-- > 0, "no more members than blocks");
    if (!bundle::CheckMember(**member, {}).ok()) {
      return;
    }
    const auto content = reader.Content();
    if (!content.ok()) {
      return;
    }
    Promise(LiesIn(*content, bytes), "the content lies in the archive");
    Promise(static_cast<int64_t>(content->size()) <= (*member)->bytes,
            "no more content than the header says");
  }
}

void RegistryAnswer(std::string_view bytes) {
  if (const auto challenge = bundle::ParseChallenge(bytes); challenge.ok()) {
    const auto url = bundle::TokenUrl(*challenge, "repository:team/llama:pull");
    Promise(!url.ok() || http::Url::Parse(*url).ok(), "a token URL is a URL");
  }
  if (const auto token = bundle::ParseToken(bytes); token.ok()) {
    Promise(token->find_first_of("\r\n") == std::string::npos, "a token fits into a header line");
  }
  static_cast<void>(bundle::FindCredentials(bytes, "registry.example.com"));
}

void Location(std::string_view bytes) {
  if (const auto url = http::Url::Parse(bytes); url.ok()) {
    const auto again = http::Url::Parse(url->ToString());
    Promise(again.ok() && again->ToString() == url->ToString(), "a written URL reads the same");
    Promise(url->port != 0, "a URL has a port");
  }
  const auto base = http::Url::Parse("https://registry.example.com:5000/v2/team/llama/blobs/x?a=b");
  if (const auto next = http::ResolveLocation(*base, bytes); next.ok()) {
    Promise(http::Url::Parse(next->ToString()).ok(), "a location leads to a URL");
  }
}

}  // namespace cachewarm::fuzz
