// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/mirrors/mirrored_store.h"

#include <utility>

#include "lib/base/status.h"
#include "lib/bundle/store/telling_sink.h"

namespace cachewarm::bundle {
namespace {

constexpr BackoffPolicy kLeftOut{
    .first = std::chrono::seconds(30), .most = std::chrono::minutes(10), .jitter = 0.2};
constexpr Duration kDeliveredFor = std::chrono::minutes(10);
constexpr size_t kDeliveredMax = 8192;

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

bool MirroredStore::IsLeftOut(size_t mirror) {
  const std::lock_guard lock(mutex_);
  return clock_.Monotonic() < mirrors_[mirror].bad_until;
}

void MirroredStore::Note(size_t mirror, const absl::Status& result) {
  if (absl::IsNotFound(result) || absl::IsCancelled(result)) {
    return;
  }
  const std::lock_guard lock(mutex_);
  Mirror& noted = mirrors_[mirror];
  if (result.ok()) {
    noted.failures = 0;
    return;
  }
  noted.bad_until = clock_.Monotonic() + BackoffDelay(kLeftOut, noted.failures++, random_());
}

bool MirroredStore::WasDelivered(const Reading& reading) {
  const std::lock_guard lock(mutex_);
  const auto found = delivered_.find(reading);
  return found != delivered_.end() && clock_.Monotonic() < found->second;
}

void MirroredStore::NoteDelivered(const Reading& reading) {
  const std::lock_guard lock(mutex_);
  const MonoTime now = clock_.Monotonic();
  std::erase_if(delivered_, [now](const auto& entry) { return entry.second <= now; });
  if (delivered_.size() >= kDeliveredMax) {
    delivered_.clear();  // the next read of one of them may come from a mirror once more
  }
  delivered_[reading] = now + kDeliveredFor;
}

absl::Status MirroredStore::ReadBlob(const std::string& repository, const BlobRange& range,
                                     Sink& sink, std::stop_token stop) {
  const Reading reading(repository, range.digest, range.offset);
  TellingSink told(sink);
  const auto rest = [&] {
    return BlobRange{.digest = range.digest,
                     .offset = range.offset + told.bytes(),
                     .bytes = range.bytes - told.bytes()};
  };
  const bool trusts_mirrors = !WasDelivered(reading);
  for (size_t i = 0; trusts_mirrors && i < mirrors_.size(); ++i) {
    if (IsLeftOut(i)) {
      continue;
    }
    absl::Status read = mirrors_[i].store->ReadBlob(repository, rest(), told, stop);
    if (told.wrote()) {
      NoteDelivered(reading);
    }
    if (!told.status().ok()) {
      // A full disk says nothing about the mirror.
      Note(i, absl::IsDataLoss(told.status()) ? told.status() : absl::OkStatus());
      return told.status();
    }
    Note(i, read);
    if (read.ok() || absl::IsCancelled(read)) {
      return read;
    }
  }
  return inner().ReadBlob(repository, rest(), told, stop);
}

absl::StatusOr<std::string> MirroredStore::ReadManifest(const std::string& repository,
                                                        const Digest& digest,
                                                        std::stop_token stop) {
  for (size_t i = 0; i < mirrors_.size(); ++i) {
    if (IsLeftOut(i)) {
      continue;
    }
    auto text = mirrors_[i].store->ReadManifest(repository, digest, stop);
    Note(i, text.status());
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
  // What refers to a bundle proves itself: while the origin is down, a mirror's list is as good.
  for (size_t i = 0; IsRetryable(found.status()) && i < mirrors_.size(); ++i) {
    if (IsLeftOut(i)) {
      continue;
    }
    auto listed = mirrors_[i].store->Referrers(repository, subject, artifact_type, stop);
    Note(i, listed.status());
    if (listed.ok() || absl::IsCancelled(listed.status())) {
      found = std::move(listed);
    }
  }
  return found;
}

}  // namespace cachewarm::bundle
