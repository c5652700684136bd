// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/digest.h"

// The tags of bundles. "k-<key>" points to the newest bundle of a key. In a registry each bundle
// of a key also has a tag of its own, "k-<key>-<time>-<start of its digest>". Pure.
namespace cachewarm::bundle {

struct KeyTag {
  std::string key;                    // 64 hex digits
  std::optional<WallTime> published;  // nullopt for "k-<key>"
  std::string digest;                 // Digest::Short() of the bundle; empty for "k-<key>"
};

// Returns the parts of a tag of either form; nullopt for any other tag.
std::optional<KeyTag> ParseKeyTag(std::string_view tag);
// Returns "k-<key>".
std::string KeyTagOf(std::string_view key);
// Returns the own tag of the bundle `digest`: "<key_tag>-20261126T063000Z-0123456789ab".
std::string DatedTag(std::string_view key_tag, const Digest& digest, WallTime published);

}  // namespace cachewarm::bundle
