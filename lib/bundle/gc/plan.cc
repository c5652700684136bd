// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/gc/plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lib/bundle/store/key_tag.h"

namespace cachewarm::bundle {
namespace {

// Referrers of referrers are followed up to this depth.
constexpr int kReferrerDepth = 8;

using Reasons = std::map<Digest, GcReason>;
using Manifests = std::map<Digest, const GcManifest*>;

bool IsBundle(const GcManifest& manifest) {
  return !manifest.key.empty() && !manifest.subject.has_value();
}

// True if the bundle has the tag "k-<key>".
bool IsCurrent(const GcManifest& manifest) {
  const auto& tags = manifest.stored.tags;
  return std::find(tags.begin(), tags.end(), KeyTagOf(manifest.key)) != tags.end();
}

// True if the manifest has a tag that neither a publication nor a signature gave it.
bool HasOtherTag(const GcManifest& manifest) {
  const auto& tags = manifest.stored.tags;
  return std::any_of(tags.begin(), tags.end(), [&](const std::string& tag) {
    const bool is_about_subject = manifest.subject.has_value() && tag.starts_with("sha256-");
    return !is_about_subject && !ParseKeyTag(tag).has_value();
  });
}

// Orders the bundles of a key: first the one with the tag of the key, then the newest.
bool IsNewer(const GcManifest* a, const GcManifest* b) {
  const auto rank = [](const GcManifest& manifest) {
    return std::tuple(IsCurrent(manifest), manifest.stored.published.value_or(WallTime::min()),
                      manifest.stored.digest);
  };
  return rank(*a) > rank(*b);
}

class KeyPlan {
 public:
  KeyPlan(const std::vector<const GcManifest*>& bundles, const GcPolicy& policy)
      : bundles_(bundles), policy_(policy) {}

  GcReason ReasonFor(size_t rank) const {
    const GcManifest& bundle = *bundles_[rank];
    if (policy_.wanted.contains(bundle.stored.digest)) {
      return GcReason::kWanted;
    }
    if (HasOtherTag(bundle)) {
      return GcReason::kTagged;
    }
    const bool retained = rank < static_cast<size_t>(std::max(policy_.retain, 1));
    if (retained && !IsExpired()) {
      return GcReason::kNewest;
    }
    if (!bundle.stored.published.has_value()) {
      return GcReason::kUndated;
    }
    if (policy_.now - UsedUntil(rank) < policy_.older_than) {
      return GcReason::kYoung;
    }
    return retained ? GcReason::kExpired : GcReason::kReplaced;
  }

 private:
  // True if the key is unused and its newest bundle is old.
  bool IsExpired() const {
    if (!policy_.expire.has_value() || policy_.used_keys.contains(bundles_.front()->key)) {
      return false;
    }
    WallTime newest = WallTime::min();
    for (const GcManifest* bundle : bundles_) {
      if (!bundle->stored.published.has_value()) {
        return false;
      }
      newest = std::max(newest, *bundle->stored.published);
    }
    return policy_.now - newest >= *policy_.expire;
  }

  // Returns the last time at which a reader could have found the bundle under the tag of its key:
  // when it was published, or when the next newer one was.
  WallTime UsedUntil(size_t rank) const {
    const WallTime own = *bundles_[rank]->stored.published;
    return rank == 0 ? own : std::max(own, bundles_[rank - 1]->stored.published.value_or(own));
  }

  const std::vector<const GcManifest*>& bundles_;  // newest first
  const GcPolicy& policy_;
};

// The listed objects from which the reason for a referrer follows.
struct SubjectContext {
  const Manifests& listed;
  const std::set<Digest>& unlisted;  // GcRepository::unlisted_subjects
  const Reasons& bundles;
  const GcPolicy& policy;
};

GcReason ReasonForReferrer(const GcManifest& referrer, const SubjectContext& context) {
  const GcPolicy& policy = context.policy;
  if (policy.wanted.contains(referrer.stored.digest)) {
    return GcReason::kWanted;
  }
  if (HasOtherTag(referrer)) {
    return GcReason::kTagged;
  }
  Digest subject = *referrer.subject;
  for (int depth = 0; depth < kReferrerDepth; ++depth) {
    if (policy.wanted.contains(subject) || context.unlisted.contains(subject)) {
      return GcReason::kReferrerOfKept;
    }
    const auto found = context.listed.find(subject);
    if (found == context.listed.end()) {
      break;
    }
    if (!found->second->subject.has_value()) {
      const bool gone = IsDeletion(context.bundles.at(subject));
      return gone ? GcReason::kReferrerOfGone : GcReason::kReferrerOfKept;
    }
    subject = *found->second->subject;
  }
  // The subject does not exist, or not yet: a registry accepts a referrer before its subject.
  if (!referrer.stored.published.has_value()) {
    return GcReason::kUndated;
  }
  const bool young = policy.now - *referrer.stored.published < policy.older_than;
  return young ? GcReason::kYoung : GcReason::kReferrerOfGone;
}

// Keeps the subject of every referrer that is kept, and with it all of the subject's referrers.
void KeepSubjects(const Manifests& manifests, Reasons& reasons) {
  std::map<Digest, std::vector<Digest>> referrers;  // by subject
  std::vector<Digest> kept;
  for (const auto& [digest, manifest] : manifests) {
    if (manifest->subject.has_value()) {
      referrers[*manifest->subject].push_back(digest);
    }
    if (!IsDeletion(reasons.at(digest))) {
      kept.push_back(digest);
    }
  }
  const auto keep = [&](const Digest& digest, GcReason reason) {
    const auto found = reasons.find(digest);
    if (found != reasons.end() && IsDeletion(found->second)) {
      found->second = reason;
      kept.push_back(digest);
    }
  };
  while (!kept.empty()) {
    const Digest digest = std::move(kept.back());
    kept.pop_back();
    for (const Digest& referrer : referrers[digest]) {
      keep(referrer, GcReason::kReferrerOfKept);
    }
    if (const auto& subject = manifests.at(digest)->subject; subject.has_value()) {
      keep(*subject, GcReason::kSubjectOfKept);
    }
  }
}

Reasons ReasonsFor(const GcRepository& repository, const GcPolicy& policy) {
  Reasons reasons;
  Manifests manifests;
  std::map<std::string, std::vector<const GcManifest*>> keys;
  for (const GcManifest& manifest : repository.manifests) {
    manifests[manifest.stored.digest] = &manifest;
    if (IsBundle(manifest)) {
      keys[manifest.key].push_back(&manifest);
    } else if (!manifest.subject.has_value()) {
      reasons[manifest.stored.digest] = policy.wanted.contains(manifest.stored.digest)
                                            ? GcReason::kWanted
                                            : GcReason::kNotABundle;
    }
  }
  for (auto& [key, bundles] : keys) {
    std::sort(bundles.begin(), bundles.end(), IsNewer);
    const KeyPlan plan(bundles, policy);
    for (size_t rank = 0; rank < bundles.size(); ++rank) {
      reasons[bundles[rank]->stored.digest] = plan.ReasonFor(rank);
    }
  }
  Reasons referrers;
  for (const GcManifest& manifest : repository.manifests) {
    if (manifest.subject.has_value()) {
      referrers[manifest.stored.digest] =
          ReasonForReferrer(manifest, {.listed = manifests,
                                       .unlisted = repository.unlisted_subjects,
                                       .bundles = reasons,
                                       .policy = policy});
    }
  }
  reasons.merge(referrers);
  KeepSubjects(manifests, reasons);
  return reasons;
}

int64_t BytesOf(const GcManifest& manifest) {
  int64_t sum = manifest.bytes;
  for (const Descriptor& blob : manifest.blobs) {
    sum += blob.bytes;
  }
  return sum;
}

GcRepositoryPlan PlanRepository(GcRepository repository, const GcPolicy& policy) {
  const Reasons reasons = ReasonsFor(repository, policy);
  GcRepositoryPlan plan{.name = std::move(repository.name), .items = {}};
  plan.items.reserve(repository.manifests.size());
  for (GcManifest& manifest : repository.manifests) {
    GcItem& item = plan.items.emplace_back();
    item.reason = reasons.at(manifest.stored.digest);
    item.bytes = BytesOf(manifest);
    item.manifest = std::move(manifest);
  }
  std::sort(plan.items.begin(), plan.items.end(), [](const GcItem& a, const GcItem& b) {
    const bool a_is_bundle = IsBundle(a.manifest);
    const bool b_is_bundle = IsBundle(b.manifest);
    if (a_is_bundle != b_is_bundle || a.manifest.key != b.manifest.key) {
      return std::tuple(!a_is_bundle, a.manifest.key) < std::tuple(!b_is_bundle, b.manifest.key);
    }
    return IsNewer(&a.manifest, &b.manifest);
  });
  return plan;
}

// Sets freed_bytes of the deleted items of `plans`, which share their blobs.
void CountFreedBytes(const std::vector<GcRepositoryPlan*>& plans) {
  std::set<Digest> counted;  // blobs that stay, or that are counted already
  for (const GcRepositoryPlan* plan : plans) {
    for (const GcItem& item : plan->items) {
      for (const Descriptor& blob : item.manifest.blobs) {
        if (!IsDeletion(item.reason)) {
          counted.insert(blob.digest);
        }
      }
    }
  }
  for (GcRepositoryPlan* plan : plans) {
    for (GcItem& item : plan->items) {
      if (!IsDeletion(item.reason)) {
        continue;
      }
      item.freed_bytes = item.manifest.bytes;
      for (const Descriptor& blob : item.manifest.blobs) {
        item.freed_bytes += counted.insert(blob.digest).second ? blob.bytes : 0;
      }
    }
  }
}

}  // namespace

std::string_view NameOf(GcReason reason) {
  switch (reason) {
    case GcReason::kNewest:
      return "newest";
    case GcReason::kWanted:
      return "wanted";
    case GcReason::kTagged:
      return "tagged";
    case GcReason::kYoung:
      return "too young";
    case GcReason::kUndated:
      return "age unknown";
    case GcReason::kReferrerOfKept:
      return "referrer of kept";
    case GcReason::kSubjectOfKept:
      return "subject of kept";
    case GcReason::kNotABundle:
      return "not a bundle";
    case GcReason::kReplaced:
      return "replaced";
    case GcReason::kExpired:
      return "expired";
    case GcReason::kReferrerOfGone:
      return "referrer of deleted";
  }
  return "";
}

bool IsDeletion(GcReason reason) {
  return reason == GcReason::kReplaced || reason == GcReason::kExpired ||
         reason == GcReason::kReferrerOfGone;
}

std::vector<GcRepositoryPlan> PlanGc(std::vector<GcRepository> repositories,
                                     const GcPolicy& policy) {
  std::vector<GcRepositoryPlan> plans;
  plans.reserve(repositories.size());
  std::vector<GcRepositoryPlan*> shared;
  for (GcRepository& repository : repositories) {
    const bool complete = repository.complete;
    plans.push_back(PlanRepository(std::move(repository), policy));
    if (complete) {
      CountFreedBytes({&plans.back()});
    } else {
      shared.push_back(&plans.back());
    }
  }
  CountFreedBytes(shared);
  return plans;
}

}  // namespace cachewarm::bundle
