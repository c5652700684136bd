// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/gc/collect.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/referrers/artifact.h"
#include "lib/bundle/store/key_tag.h"

namespace cachewarm::bundle {
namespace {

// Blobs younger than this are never swept, even if the user sets a lower age, because a publication
// may last as long.
constexpr Duration kBlobAgeMin = std::chrono::hours(1);

// True if the error is that of one manifest, so that the others can be collected nevertheless.
bool IsOfTheManifest(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsInvalidArgument(status) ||
         absl::IsOutOfRange(status);
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

// Carries out the plan of one repository.
class Collection {
 public:
  Collection(Store& store, const GcRun& run, std::stop_token stop)
      : store_(store), run_(run), stop_(std::move(stop)) {}

  absl::StatusOr<SweepReport> Run() {
    for (const GcItem* item : ReferrersFirst()) {
      CW_RETURN_IF_ERROR(Delete(*item));
    }
    for (const GcItem& item : run_.plan.items) {
      const Digest& digest = item.manifest.stored.digest;
      const auto failure = failures_.find(digest);
      run_.on_item(item, results_.at(digest),
                   failure == failures_.end() ? absl::OkStatus() : failure->second);
    }
    return store_.SweepBlobs(run_.plan.name,
                             {.keep = run_.policy.wanted,
                              .without = run_.dry_run ? deleted_ : std::set<Digest>(),
                              .min_age = std::max(run_.policy.older_than, kBlobAgeMin),
                              .dry_run = run_.dry_run},
                             stop_);
  }

 private:
  // Returns the items, each one after all that refer to it.
  std::vector<const GcItem*> ReferrersFirst() const {
    std::map<Digest, const GcItem*> items;
    for (const GcItem& item : run_.plan.items) {
      items[item.manifest.stored.digest] = &item;
    }
    // The number of manifests between the item and the end of its chain of subjects.
    const auto depth_of = [&items](const GcItem* item) {
      size_t depth = 0;
      while (item->manifest.subject.has_value() && depth < items.size()) {
        const auto subject = items.find(*item->manifest.subject);
        ++depth;
        if (subject == items.end()) {
          break;
        }
        item = subject->second;
      }
      return depth;
    };
    std::vector<std::pair<size_t, const GcItem*>> ordered;
    for (const GcItem& item : run_.plan.items) {
      ordered.emplace_back(depth_of(&item), &item);
    }
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<const GcItem*> found;
    found.reserve(ordered.size());
    for (const auto& [depth, item] : ordered) {
      found.push_back(item);
    }
    return found;
  }

  // Records that the item stays, and therefore its subject too.
  void Keep(const GcItem& item, GcResult result) {
    results_[item.manifest.stored.digest] = result;
    if (item.manifest.subject.has_value()) {
      needed_.insert(*item.manifest.subject);
    }
  }

  absl::Status Delete(const GcItem& item) {
    const Digest& digest = item.manifest.stored.digest;
    if (!IsDeletion(item.reason)) {
      results_[digest] = GcResult::kKept;
      return absl::OkStatus();
    }
    if (needed_.contains(digest)) {
      Keep(item, GcResult::kFailed);
      failures_[digest] = absl::AbortedError("a manifest that refers to it could not be deleted");
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
    } else if (absl::IsFailedPrecondition(status)) {
      Keep(item, GcResult::kChanged);
    } else {
      Keep(item, GcResult::kFailed);
      failures_[digest] = std::move(status);
    }
    return absl::OkStatus();
  }

  Store& store_;
  const GcRun& run_;
  const std::stop_token stop_;
  std::map<Digest, GcResult> results_;
  std::map<Digest, absl::Status> failures_;
  std::set<Digest> deleted_;
  std::set<Digest> needed_;  // subjects of manifests that could not be deleted
};

}  // namespace

absl::StatusOr<GcRepository> ReadGcRepository(const RepositoryRef& ref, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const ManifestList list, ref.store.ListManifests(ref.repository, stop));
  GcRepository repository{.name = ref.repository, .manifests = {}, .complete = list.complete};
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
