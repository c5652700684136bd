// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/mirrors/mirrored_store.h"

#include <utility>

#include "lib/base/status.h"
#include "lib/bundle/store/counting_sink.h"

namespace cachewarm::bundle {
namespace {

constexpr BackoffPolicy kMirrorBackoff{
    .first = std::chrono::seconds(30), .most = std::chrono::minutes(10), .jitter = 0.2};
constexpr Duration kMirrorReadsKept = std::chrono::minutes(10);
constexpr size_t kMirrorReadsMax = 8192;

}  // namespace

MirroredStore::MirroredStore(std::unique_ptr<Store> origin,
                             std::vector<std::unique_ptr<Store>> mirrors, const Clock& clock,
                             Random random)
    : ForwardingStore(std::move(origin)), clock_(clock), random_(std::move(random)) {
  for (std::unique_ptr<Store>& store : mirrors) {
    mirrors_.push_back({.store = std::move(store)});
  }
}

MirroredStore::~MirroredStore() = default;

bool MirroredStore::IsBackingOff(size_t mirror) {
  const std::lock_guard lock(mutex_);
  return clock_.Monotonic() < mirrors_[mirror].retry_at;
}

void MirroredStore::RecordResult(size_t mirror, const absl::Status& result) {
  if (absl::IsNotFound(result) || absl::IsCancelled(result)) {
    return;
  }
  const std::lock_guard lock(mutex_);
  Mirror& entry = mirrors_[mirror];
  if (result.ok()) {
    entry.failures = 0;
    return;
  }
  entry.retry_at = clock_.Monotonic() + BackoffDelay(kMirrorBackoff, entry.failures++, random_());
}

bool MirroredStore::WasReadFromMirror(const ReadKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = mirror_reads_.find(key);
  return found != mirror_reads_.end() && clock_.Monotonic() < found->second;
}

void MirroredStore::RecordMirrorRead(const ReadKey& key) {
  const std::lock_guard lock(mutex_);
  const MonoTime now = clock_.Monotonic();
  std::erase_if(mirror_reads_, [now](const auto& entry) { return entry.second <= now; });
  if (mirror_reads_.size() >= kMirrorReadsMax) {
    mirror_reads_.clear();  // forgets all: a second read of a range may then use a mirror
  }
  mirror_reads_[key] = now + kMirrorReadsKept;
}

absl::Status MirroredStore::ReadBlob(const std::string& repository, const BlobRange& range,
                                     Sink& sink, std::stop_token stop) {
  const ReadKey key(repository, range.digest, range.offset);
  CountingSink counted(sink);
  const auto rest = [&] {
    return BlobRange{.digest = range.digest,
                     .offset = range.offset + counted.bytes(),
                     .bytes = range.bytes - counted.bytes()};
  };
  const bool trusts_mirrors = !WasReadFromMirror(key);
  for (size_t i = 0; trusts_mirrors && i < mirrors_.size(); ++i) {
    if (IsBackingOff(i)) {
      continue;
    }
    absl::Status read = mirrors_[i].store->ReadBlob(repository, rest(), counted, stop);
    if (counted.wrote()) {
      RecordMirrorRead(key);
    }
    if (!counted.status().ok()) {
      // Of the sink's errors only DATA_LOSS is the mirror's fault; a full disk, for example, is
      // not.
      RecordResult(i, absl::IsDataLoss(counted.status()) ? counted.status() : absl::OkStatus());
      return counted.status();
    }
    RecordResult(i, read);
    if (read.ok() || absl::IsCancelled(read)) {
      return read;
    }
  }
  return inner().ReadBlob(repository, rest(), counted, stop);
}

absl::StatusOr<std::string> MirroredStore::ReadManifest(const std::string& repository,
                                                        const Digest& digest,
                                                        std::stop_token stop) {
  for (size_t i = 0; i < mirrors_.size(); ++i) {
    if (IsBackingOff(i)) {
      continue;
    }
    auto text = mirrors_[i].store->ReadManifest(repository, digest, stop);
    RecordResult(i, text.status());
    if (text.ok() || absl::IsCancelled(text.status())) {
      return text;
    }
  }
  return inner().ReadManifest(repository, digest, stop);
}

absl::StatusOr<std::vector<Descriptor>> MirroredStore::Referrers(const std::string& repository,
                                                                 const Digest& subject,
                                                                 const std::string& artifact_type,
                                                                 std::stop_token stop) {
  auto found = inner().Referrers(repository, subject, artifact_type, stop);
  // Callers verify every referrer, so a mirror's list is acceptable while the origin is down.
  for (size_t i = 0; IsRetryable(found.status()) && i < mirrors_.size(); ++i) {
    if (IsBackingOff(i)) {
      continue;
    }
    auto listed = mirrors_[i].store->Referrers(repository, subject, artifact_type, stop);
    RecordResult(i, listed.status());
    if (listed.ok() || absl::IsCancelled(listed.status())) {
      found = std::move(listed);
    }
  }
  return found;
}

}  // namespace cachewarm::bundle
