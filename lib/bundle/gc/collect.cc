// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/gc/collect.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/bundle/referrers/artifact.h"
#include "lib/bundle/store/key_tag.h"

namespace cachewarm::bundle {
namespace {

// Blobs younger than this are never swept, even if the user sets a lower age, because a publication
// may last as long.
constexpr Duration kBlobAgeMin = std::chrono::hours(1);

// True if the error is that of one manifest, so that the others can be collected nevertheless.
// RESOURCE_EXHAUSTED: it is too large.
bool IsOfTheManifest(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsInvalidArgument(status) ||
         absl::IsOutOfRange(status) || absl::IsResourceExhausted(status);
}

// Returns the key of the tags of a bundle; empty if no tag has one.
std::string KeyOfTags(const StoredManifest& stored) {
  for (const std::string& tag : stored.tags) {
    if (const auto key = ParseKeyTag(tag); key.has_value()) {
      return key->key;
    }
  }
  return "";
}

// cosign 2 stores the signature of sha256:HEX under the tag "sha256-HEX.sig" instead of as a
// referrer. Returns HEX's digest if all tags are of that form.
std::optional<Digest> SubjectOfTags(const StoredManifest& stored) {
  std::optional<Digest> subject;
  for (const std::string& tag : stored.tags) {
    const size_t dot = tag.find('.');
    const bool is_about = tag.starts_with("sha256-") && dot != std::string::npos;
    const auto digest = is_about ? Digest::Parse("sha256:" + tag.substr(7, dot - 7))
                                 : absl::StatusOr<Digest>(absl::NotFoundError(""));
    if (!digest.ok()) {
      return std::nullopt;
    }
    subject = *digest;
  }
  return subject;
}

class RepositoryReader {
 public:
  RepositoryReader(const RepositoryRef& ref, std::stop_token stop)
      : ref_(ref), stop_(std::move(stop)) {}

  absl::StatusOr<GcManifest> Read(const StoredManifest& stored) {
    GcManifest manifest{.stored = stored};
    const absl::Status read = Fill(manifest);
    if (!read.ok()) {
      if (!IsOfTheManifest(read)) {
        return read;
      }
      manifest.problem = Message(read);
    }
    return manifest;
  }

  // True if the manifest exists, also if it cannot be read.
  absl::StatusOr<bool> Exists(const Digest& digest) {
    if (stop_.stop_requested()) {
      return absl::CancelledError("stopped while looking for subjects");
    }
    const absl::Status read = ref_.store.ReadManifest(ref_.repository, digest, stop_).status();
    if (!read.ok() && !IsOfTheManifest(read)) {
      return read;
    }
    return !absl::IsNotFound(read);
  }

 private:
  absl::Status Fill(GcManifest& manifest) {
    CW_ASSIGN_OR_RETURN(const std::string text,
                        ref_.store.ReadManifest(ref_.repository, manifest.stored.digest, stop_));
    manifest.bytes = static_cast<int64_t>(text.size());
    manifest.subject = SubjectOfTags(manifest.stored);
    if (const auto artifact = ParseArtifact(text); artifact.ok()) {
      manifest.subject = artifact->subject.digest;
      AddBlobs(artifact->config, artifact->layers, manifest);
      return absl::OkStatus();
    }
    CW_ASSIGN_OR_RETURN(const Manifest bundle, ParseManifest(text));
    AddBlobs(bundle.config, bundle.layers, manifest);
    manifest.key = KeyOfTags(manifest.stored);
    if (!manifest.key.empty()) {
      return absl::OkStatus();
    }
    CW_ASSIGN_OR_RETURN(
        const std::string config_text,
        ReadSmallBlob(ref_.store, ref_.repository, bundle.config, kConfigBytesMax, stop_));
    CW_ASSIGN_OR_RETURN(const Config config, ParseConfig(config_text));
    manifest.key = config.facts.key;
    return absl::OkStatus();
  }

  static void AddBlobs(const Descriptor& config, const std::vector<Descriptor>& layers,
                       GcManifest& manifest) {
    manifest.blobs = layers;
    manifest.blobs.push_back(config);
  }

  const RepositoryRef& ref_;
  const std::stop_token stop_;
};

// Adds the subjects that exist although the list of the repository lacks them.
absl::Status AddUnlistedSubjects(RepositoryReader& reader, const std::set<Digest>& listed,
                                 GcRepository& repository) {
  std::set<Digest> subjects;
  for (const GcManifest& manifest : repository.manifests) {
    if (manifest.subject.has_value() && !listed.contains(*manifest.subject)) {
      subjects.insert(*manifest.subject);
    }
  }
  for (const Digest& subject : subjects) {
    CW_ASSIGN_OR_RETURN(const bool exists, reader.Exists(subject));
    if (exists) {
      repository.unlisted_subjects.insert(subject);
    }
  }
  return absl::OkStatus();
}

// Carries out the plan of one repository.
class Collection {
 public:
  Collection(Store& store, const GcRun& run, std::stop_token stop)
      : store_(store), run_(run), stop_(std::move(stop)) {}

  absl::StatusOr<SweepReport> Run() {
    if (!run_.dry_run) {
      CW_RETURN_IF_ERROR(FindChanged());
    }
    const absl::Status collected = CollectChains();
    for (const GcItem& item : run_.plan.items) {
      const Digest& digest = item.manifest.stored.digest;
      const auto result = results_.find(digest);
      const bool is_deleted = result != results_.end() && result->second == GcResult::kDeleted;
      if (collected.ok() || is_deleted) {
        const auto failure = failures_.find(digest);
        run_.on_item(item, result->second,
                     failure == failures_.end() ? absl::OkStatus() : failure->second);
      }
    }
    CW_RETURN_IF_ERROR(collected);
    return store_.SweepBlobs(run_.plan.name,
                             {.keep = run_.policy.wanted,
                              .without = run_.dry_run ? deleted_ : std::set<Digest>(),
                              .min_age = std::max(run_.policy.older_than, kBlobAgeMin),
                              .dry_run = run_.dry_run},
                             stop_);
  }

 private:
  // A manifest and all that refer to it, directly or not; each one after its referrers.
  using Chain = std::vector<const GcItem*>;

  // Lists the manifests again and notes those to delete that have changed.
  absl::Status FindChanged() {
    std::map<Digest, const StoredManifest*> planned;
    for (const GcItem& item : run_.plan.items) {
      if (IsDeletion(item.reason)) {
        planned[item.manifest.stored.digest] = &item.manifest.stored;
      }
    }
    if (planned.empty()) {
      return absl::OkStatus();
    }
    CW_ASSIGN_OR_RETURN(const ManifestList list, store_.ListManifests(run_.plan.name, stop_));
    for (const StoredManifest& now : list.manifests) {
      const auto found = planned.find(now.digest);
      if (found != planned.end() && *found->second != now) {
        changed_.insert(now.digest);
      }
    }
    return absl::OkStatus();
  }

  // Returns the items as chains, in the order of the plan.
  std::vector<Chain> Chains() const {
    const std::vector<GcItem>& items = run_.plan.items;
    std::map<Digest, size_t> indices;
    for (size_t i = 0; i < items.size(); ++i) {
      indices[items[i].manifest.stored.digest] = i;
    }
    // The items by the end of their chain of subjects, with their distance to it.
    std::map<size_t, std::vector<std::pair<size_t, const GcItem*>>> by_end;
    for (const GcItem& item : items) {
      size_t end = indices.at(item.manifest.stored.digest);
      size_t distance = 0;
      for (; items[end].manifest.subject.has_value() && distance < items.size(); ++distance) {
        const auto subject = indices.find(*items[end].manifest.subject);
        if (subject == indices.end()) {
          break;
        }
        end = subject->second;
      }
      by_end[end].emplace_back(distance, &item);
    }
    std::vector<Chain> chains;
    for (auto& [end, members] : by_end) {
      std::stable_sort(members.begin(), members.end(),
                       [](const auto& a, const auto& b) { return a.first > b.first; });
      Chain& chain = chains.emplace_back();
      for (const auto& [distance, item] : members) {
        chain.push_back(item);
      }
    }
    return chains;
  }

  // Returns the reason for which nothing of the chain is deleted; OK if there is none.
  absl::Status Check(const Chain& chain) {
    std::set<Digest> subjects;  // of referrers that are to be deleted
    for (const GcItem* item : chain) {
      const StoredManifest& stored = item->manifest.stored;
      if (!IsDeletion(item->reason)) {
        continue;
      }
      if (changed_.contains(stored.digest)) {
        return absl::FailedPreconditionError("it has changed since it was listed");
      }
      if (subjects.contains(stored.digest)) {
        CW_RETURN_IF_ERROR(store_.CheckUnchanged(run_.plan.name, stored, stop_));
      }
      if (item->manifest.subject.has_value()) {
        subjects.insert(*item->manifest.subject);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CollectChains() {
    for (const Chain& chain : Chains()) {
      CW_RETURN_IF_ERROR(Collect(chain));
    }
    return absl::OkStatus();
  }

  absl::Status Collect(const Chain& chain) {
    const absl::Status checked = run_.dry_run ? absl::OkStatus() : Check(chain);
    for (const GcItem* item : chain) {
      if (stop_.stop_requested() || absl::IsCancelled(checked)) {
        return absl::CancelledError("stopped while deleting manifests");
      }
      if (!IsDeletion(item->reason)) {
        results_[item->manifest.stored.digest] = GcResult::kKept;
      } else if (!checked.ok()) {
        Keep(*item, checked);
      } else {
        CW_RETURN_IF_ERROR(Delete(*item));
      }
    }
    return absl::OkStatus();
  }

  // Records why the item stays; its subject stays too.
  void Keep(const GcItem& item, const absl::Status& reason) {
    const Digest& digest = item.manifest.stored.digest;
    const bool has_changed = absl::IsFailedPrecondition(reason);
    results_[digest] = has_changed ? GcResult::kChanged : GcResult::kFailed;
    if (!has_changed) {
      failures_[digest] = reason;
    }
    if (item.manifest.subject.has_value()) {
      needed_.insert(*item.manifest.subject);
    }
  }

  absl::Status Delete(const GcItem& item) {
    const Digest& digest = item.manifest.stored.digest;
    if (needed_.contains(digest)) {
      Keep(item, absl::AbortedError("a manifest that refers to it could not be deleted"));
      return absl::OkStatus();
    }
    if (run_.dry_run) {
      deleted_.insert(digest);
      results_[digest] = GcResult::kWouldDelete;
      return absl::OkStatus();
    }
    absl::Status status = store_.DeleteManifest(run_.plan.name, item.manifest.stored, stop_);
    if (absl::IsUnimplemented(status) || absl::IsCancelled(status)) {
      return status;
    }
    if (status.ok()) {
      results_[digest] = GcResult::kDeleted;
    } else {
      Keep(item, status);
    }
    return absl::OkStatus();
  }

  Store& store_;
  const GcRun& run_;
  const std::stop_token stop_;
  std::map<Digest, GcResult> results_;
  std::map<Digest, absl::Status> failures_;
  std::set<Digest> deleted_;
  std::set<Digest> needed_;   // subjects of manifests that could not be deleted
  std::set<Digest> changed_;  // manifests that differ from the plan's
};

}  // namespace

absl::StatusOr<GcRepository> ReadGcRepository(const RepositoryRef& ref, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const ManifestList list, ref.store.ListManifests(ref.repository, stop));
  GcRepository repository{
      .name = ref.repository, .manifests = {}, .complete = list.complete, .unlisted_subjects = {}};
  RepositoryReader reader(ref, stop);
  std::set<Digest> seen;
  for (const StoredManifest& stored : list.manifests) {
    if (stop.stop_requested()) {
      return absl::CancelledError("stopped while reading a repository");
    }
    CW_ASSIGN_OR_RETURN(GcManifest manifest, reader.Read(stored));
    seen.insert(stored.digest);
    repository.manifests.push_back(std::move(manifest));
  }
  // The loop also reads the referrers of the referrers that it adds.
  for (size_t i = 0; !list.complete && i < repository.manifests.size(); ++i) {
    const Digest subject = repository.manifests[i].stored.digest;
    CW_ASSIGN_OR_RETURN(const std::vector<Descriptor> referrers,
                        ref.store.Referrers(ref.repository, subject, "", stop));
    for (const Descriptor& referrer : referrers) {
      if (!seen.insert(referrer.digest).second) {
        continue;
      }
      CW_ASSIGN_OR_RETURN(GcManifest manifest, reader.Read({.digest = referrer.digest}));
      // The list of referrers is unverified: skip an item without a subject, so that it is not
      // deleted.
      if (manifest.subject.has_value()) {
        repository.manifests.push_back(std::move(manifest));
      }
    }
  }
  CW_RETURN_IF_ERROR(AddUnlistedSubjects(reader, seen, repository));
  return repository;
}

std::string_view NameOf(GcResult result) {
  switch (result) {
    case GcResult::kKept:
      return "kept";
    case GcResult::kWouldDelete:
      return "would delete";
    case GcResult::kDeleted:
      return "deleted";
    case GcResult::kChanged:
      return "changed";
    case GcResult::kFailed:
      return "failed";
  }
  return "";
}

absl::StatusOr<SweepReport> CollectRepository(Store& store, const GcRun& run,
                                              std::stop_token stop) {
  return Collection(store, run, std::move(stop)).Run();
}

}  // namespace cachewarm::bundle
