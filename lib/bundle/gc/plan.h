// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/bundle/format.h"
#include "lib/bundle/store/store.h"

// Decides which bundles of a store are deleted. Pure.
namespace cachewarm::bundle {

// A manifest of a repository and what is known about it.
struct GcManifest {
  StoredManifest stored;
  int64_t bytes = 0;              // size of the manifest
  std::string key;                // key of the bundle; empty if it is not a readable bundle
  std::optional<Digest> subject;  // set for a referrer, such as a signature
  std::vector<Descriptor> blobs;  // config and layers
  std::string problem;            // why the manifest could not be read; empty if it was read
};

struct GcRepository {
  std::string name;
  std::vector<GcManifest> manifests;
  bool complete = false;  // ManifestList::complete
  // Subjects of referrers that exist although the list lacks them, such as a manifest that only an
  // image index lists.
  std::set<Digest> unlisted_subjects;
};

struct GcPolicy {
  WallTime now{};
  // Number of bundles to keep per key, the newest first; at least 1.
  int retain = 1;
  // A bundle is deleted only when it was published, and replaced by a newer one, at least this long
  // ago.
  Duration older_than{0};
  // If set, the retained bundles of a key are deleted too when the newest one is older than this
  // and the key is not in `used_keys`.
  std::optional<Duration> expire;
  std::set<Digest> wanted;          // never deleted
  std::set<std::string> used_keys;  // keys that never expire
};

enum class GcReason {
  kNewest,          // among the newest GcPolicy::retain bundles of its key
  kWanted,          // in GcPolicy::wanted
  kTagged,          // a user gave it a tag
  kYoung,           // published or replaced less than GcPolicy::older_than ago
  kUndated,         // the store does not know its age
  kReferrerOfKept,  // refers to a manifest that is kept
  kSubjectOfKept,   // a referrer that is kept for another reason refers to it
  kNotABundle,      // another kind of artifact, or not readable
  kReplaced,        // deleted: newer bundles of its key exist
  kExpired,         // deleted: its key is unused and old
  kReferrerOfGone,  // deleted: refers to a manifest that is deleted or does not exist
};
// Returns the text for users, such as "newest" or "replaced".
std::string_view NameOf(GcReason reason);
// True for the reasons of a deletion.
bool IsDeletion(GcReason reason);

struct GcItem {
  GcManifest manifest;
  GcReason reason = GcReason::kNotABundle;
  int64_t bytes = 0;  // of the manifest and its blobs
  // Bytes that a deletion frees: those of blobs that no kept manifest refers to. A blob of several
  // deleted manifests counts for the first of them.
  int64_t freed_bytes = 0;
};

struct GcRepositoryPlan {
  std::string name;
  std::vector<GcItem> items;  // sorted by key, then newest first; referrers last
};

// Plans a collection. A manifest is deleted only if every manifest that refers to it is. In
// complete listings (image layouts) every repository has its own copy of a blob; the others
// (registries) share blobs between repositories.
std::vector<GcRepositoryPlan> PlanGc(std::vector<GcRepository> repositories,
                                     const GcPolicy& policy);

}  // namespace cachewarm::bundle
