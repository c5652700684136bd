// SPDX-License-Identifier: Apache-2.0
#include "cli/run/publish.h"

#include <sys/types.h>

#include <optional>
#include <span>
#include <utility>

#include "cli/collect.h"
#include "cli/run/coverage.h"
#include "cli/run/directory.h"
#include "cli/run/fetch.h"
#include "cli/run/sized_store.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/store/open.h"
#include "lib/capture/bundle_parts.h"
#include "lib/capture/left_behind.h"
#include "lib/capture/restore_rules.h"
#include "lib/fs/lock.h"

namespace cachewarm::cli {
namespace {

constexpr int kAttempts = 5;
constexpr Duration kBetweenAttempts{500};
// If the store's bundle has at least this many layers, the files that only the store has are
// fetched and all files are packed again, because a bundle has at most 96 layers.
constexpr size_t kLayersBeforeRepack = 32;
constexpr char kLeaseFile[] = ".publish.lock";
constexpr Duration kLeaseWait{60'000};

// Returns true if the error means that the store's bundle is of no use and may be replaced.
bool IsReplaceable(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsInvalidArgument(status);
}

// Removes the autotune results of `sets` from the collection.
void LeaveOut(const std::set<std::string, std::less<>>& sets, Collection& collection) {
  const caches::CacheTable& table = caches::CacheTable::AllPresets();
  std::erase_if(collection.selection.files, [&](const capture::TreeFile& file) {
    return sets.contains(file.placement.autotune_set);
  });
  std::erase_if(collection.files, [&](const bundle::PackFile& file) {
    return sets.contains(table.Classify(file.path).autotune_set);
  });
}

// Returns the files of the bundle that are no autotune results.
bundle::Config WithoutAutotuneResults(const bundle::Config& bundle) {
  bundle::Config config{.entries = bundle.entries};
  std::erase_if(config.entries, [](const bundle::Entry& entry) {
    return !caches::CacheTable::AllPresets().Classify(entry.path).autotune_set.empty();
  });
  return config;
}

std::set<std::string> PathsOf(const bundle::Config& bundle) {
  std::set<std::string> paths;
  for (const bundle::Entry& entry : bundle.entries) {
    paths.insert(entry.path);
  }
  return paths;
}

class Publisher {
 public:
  Publisher(const PublishJob& job, std::stop_token stop) : job_(job), stop_(std::move(stop)) {}

  absl::StatusOr<PublishReport> Run() {
    if (const std::string& file = job_.source.keys.private_key_file; !file.empty()) {
      CW_ASSIGN_OR_RETURN(key_, bundle::ReadPrivateKey(file));
    }
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      CW_ASSIGN_OR_RETURN(Collection collection, CollectTree(job_.dir, job_.table));
      if (collection.files.empty()) {
        return report_;
      }
      CW_RETURN_IF_ERROR(TakeLease());
      CW_ASSIGN_OR_RETURN(const std::optional<bundle::Bundle> previous, ReadPrevious());
      if (previous.has_value()) {
        LeaveOut(capture::SetsToLeaveOut(previous->config, collection.selection.files, job_.dir),
                 collection);
      }
      if (previous.has_value() && Covers(previous->config, collection.selection.files, replaced_)) {
        report_.outcome = has_moved_tag_ ? PublishOutcome::kPublished : PublishOutcome::kCovered;
        return report_;
      }
      CW_RETURN_IF_ERROR(PublishOnce(std::move(collection), previous));
      if (has_moved_tag_ && lease_.ok()) {
        return report_;
      }
      // Without a lease (the lock of TakeLease()), another writer may have compared the tag already
      // and may still move it to its own bundle, which lacks these files. Wait, then compare again.
      if (!Pause()) {
        return absl::CancelledError("the publication was stopped");
      }
    }
    return absl::AbortedError(
        fmt::format("other writers moved the tag {} of {} {} times; the files are published when "
                    "the next command ends",
                    job_.source.tag(), job_.source.store.reference.ToString(), kAttempts));
  }

 private:
  // At the first call, locks the store if it is a directory. The lock ends with this process. It is
  // no error if the store has no locks, or if another process holds the lock for too long:
  // MoveTag() compares the tag before it moves it.
  absl::Status TakeLease() {
    const Reference& reference = job_.source.store.reference;
    CW_ASSIGN_OR_RETURN(const bundle::StoreUrl url, bundle::ParseStoreUrl(reference.store_url));
    if (has_tried_lease_ || url.kind != bundle::StoreUrl::Kind::kLayout) {
      return absl::OkStatus();
    }
    has_tried_lease_ = true;
    const auto dir = fs::Dir::OpenOrMake(fmt::format("{}/{}", url.directory, reference.repository),
                                         kCacheDirectoryMode);
    if (dir.ok()) {
      auto lock =
          fs::Lock(*dir, kLeaseFile, {.clock = job_.clock, .timeout = kLeaseWait, .stop = stop_});
      if (absl::IsCancelled(lock.status())) {
        return lock.status();
      }
      lease_ = lock.ok() ? *std::move(lock) : fs::Fd();
    }
    return absl::OkStatus();
  }

  bool Pause() const {
    const double share = 0.5 + job_.random() / 2;
    return SleepFor(
        job_.clock,
        Duration(static_cast<int64_t>(share * static_cast<double>(kBetweenAttempts.count()))),
        stop_);
  }

  // Returns the bundle whose files the new bundle must keep; nullopt if the store has no usable
  // one. Sets tagged_.
  absl::StatusOr<std::optional<bundle::Bundle>> ReadPrevious() {
    CW_ASSIGN_OR_RETURN(tagged_, ResolveTag());
    if (tagged_.empty() || tagged_ == damaged_) {
      return std::nullopt;
    }
    auto found = ReadUsableBundle(job_.source, tagged_, stop_);
    if (IsReplaceable(found.status())) {
      return std::nullopt;
    }
    CW_RETURN_IF_ERROR(found.status());
    if (found->config.facts.key != job_.source.machine.key) {
      return std::nullopt;
    }
    CW_ASSIGN_OR_RETURN(const bool trusted, IsTrusted(found->digest));
    return trusted ? std::optional(*std::move(found)) : std::nullopt;
  }

  // Returns the digest under the tag; empty if there is none.
  absl::StatusOr<Digest> ResolveTag() const {
    const bundle::RepositoryRef place = job_.source.store.place();
    auto digest = place.store.ResolveTag(place.repository, job_.source.tag(), stop_);
    return absl::IsNotFound(digest.status()) ? Digest() : digest;
  }

  // Returns true if the files of the bundle may become part of a bundle that this machine signs.
  // With --key, ReadUsableBundle() has checked its signature. Without --key, it must be signed with
  // this machine's own key (--sign-key).
  absl::StatusOr<bool> IsTrusted(const Digest& digest) const {
    if (!key_.has_value() || !job_.source.keys.public_key_file.empty()) {
      return true;
    }
    const bundle::PublicKey own = key_->public_key();
    CW_ASSIGN_OR_RETURN(
        const bundle::SignatureCheck check,
        bundle::CheckSignature(job_.source.store.place(), digest, std::span(&own, 1), stop_));
    return check.good;
  }

  absl::Status PublishOnce(Collection collection, const std::optional<bundle::Bundle>& previous) {
    bool keep_base = previous.has_value() && HasMore(previous->config, collection.selection.files);
    if (keep_base && previous->manifest.layers.size() >= kLayersBeforeRepack) {
      const FetchReport fetched =
          FetchMissing({.source = job_.source, .dir = job_.dir, .clock = job_.clock}, stop_);
      CW_RETURN_IF_ERROR(fetched.status);
      CW_ASSIGN_OR_RETURN(collection, CollectTree(job_.dir, job_.table, PathsOf(previous->config)));
      // The directory may still lack autotune results of another generation: its own replace them.
      keep_base = HasMore(WithoutAutotuneResults(previous->config), collection.selection.files);
    }
    absl::Status published = Pack(collection, previous, keep_base);
    if (absl::IsFailedPrecondition(published) && keep_base) {
      // A layer of the previous bundle is missing or truncated: nobody can read it any more.
      published = Pack(collection, std::nullopt, false);
    }
    return published;
  }

  absl::Status Pack(const Collection& collection, const std::optional<bundle::Bundle>& previous,
                    bool keep_base) {
    bundle::Facts facts = FactsOf(job_.source.machine, collection);
    if (keep_base) {
      facts = capture::UniteFacts(previous->config.facts, facts);
    }
    const bundle::RepositoryRef place = job_.source.store.place();
    // With a size limit, and if no file of the previous bundle must be kept, pack all files without
    // a base, so that the size of the bundle is known.
    const bool with_base = previous.has_value() && (keep_base || job_.packed_bytes_max == 0);
    SizedStore store(place.store, job_.packed_bytes_max,
                     with_base ? bundle::PackedBytes(previous->manifest) : 0);
    const bundle::RepositoryRef sized{store, place.repository};
    CW_ASSIGN_OR_RETURN(const bundle::Publication made,
                        bundle::Publish(sized, collection.files, facts,
                                        {.tag = "",
                                         .pack = {.threads = job_.threads,
                                                  .base = with_base ? &*previous : nullptr,
                                                  .keep_base = keep_base}},
                                        stop_));
    // Sign before the tag moves: otherwise readers with --key would find an unsigned bundle.
    if (key_.has_value()) {
      CW_RETURN_IF_ERROR(bundle::Sign(place, made.digest, *key_, stop_).status());
    }
    CW_ASSIGN_OR_RETURN(const bool moved, MoveTag(place, made.digest));
    if (moved) {
      has_moved_tag_ = true;
      report_ = {.outcome = PublishOutcome::kPublished,
                 .files = made.files,
                 .bytes = made.bytes,
                 .unnamed = collection.unnamed};
      replaced_.clear();
      damaged_ = Digest();
    }
    return absl::OkStatus();
  }

  // Moves the tag. Returns false, and does not move it, if another writer has moved it since
  // ReadPrevious().
  absl::StatusOr<bool> MoveTag(const bundle::RepositoryRef& place, const Digest& digest) {
    CW_ASSIGN_OR_RETURN(const std::string manifest,
                        place.store.ReadManifest(place.repository, digest, stop_));
    CW_ASSIGN_OR_RETURN(const Digest now, ResolveTag());
    if (now != tagged_) {
      return false;
    }
    CW_RETURN_IF_ERROR(
        place.store.WriteManifest(place.repository, manifest, job_.source.tag(), stop_).status());
    return true;
  }

  const PublishJob& job_;
  const std::stop_token stop_;
  std::optional<bundle::PrivateKey> key_;
  fs::Fd lease_;  // empty while no lease is held
  bool has_tried_lease_ = false;
  Digest tagged_;  // the bundle under the tag, as of ReadPrevious()
  Digest damaged_ = job_.damaged;
  std::set<std::string> replaced_ = job_.replaced;
  bool has_moved_tag_ = false;
  PublishReport report_;
};

}  // namespace

std::string ToText(const PublishReport& report) {
  if (report.outcome != PublishOutcome::kPublished) {
    return {};
  }
  std::string text = fmt::format("cachewarm run: published {} files, {}, for the next start\n",
                                 report.files, FormatBytes(report.bytes));
  if (report.unnamed.files > 0) {
    text += fmt::format("cachewarm run: not published, because they match no cache kind: {}\n",
                        capture::ToText(report.unnamed));
  }
  return text;
}

absl::StatusOr<PublishReport> PublishUnion(const PublishJob& job, std::stop_token stop) {
  return Publisher(job, std::move(stop)).Run();
}

}  // namespace cachewarm::cli
