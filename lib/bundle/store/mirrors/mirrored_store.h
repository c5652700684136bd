// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/bundle/store/forwarding_store.h"

namespace cachewarm::bundle {

// A store with mirrors that are asked first for what has a digest: blobs and manifests. Whatever
// can change or must be certain (tags, writes, "is this blob there?") is the origin's alone.
//
// Mirrors are tried in order, the origin is last. One that fails is left out for 30 s, then for
// longer up to 10 min while it goes on failing; one that only lacks the content is not. What a
// mirror delivered before it failed is kept, and the next one continues behind it.
//
// Mirrors are not trusted. Blobs are not verified here (Store::ReadBlob), so a mirror with wrong
// bytes shows only where the caller checks them: with a sink that says DATA_LOSS the mirror is left
// out at once; and whoever finds it out later just reads again: a range that mirrors delivered once
// comes from the origin the next time, for 10 min.
class MirroredStore : public ForwardingStore {
 public:
  // `clock` must outlive it.
  MirroredStore(std::unique_ptr<Store> origin, std::vector<std::unique_ptr<Store>> mirrors,
                const Clock& clock, Random random);
  ~MirroredStore() override;

  absl::Status ReadBlob(const std::string& repository, const BlobRange& range, Sink& sink,
                        std::stop_token stop) override;
  absl::StatusOr<std::string> ReadManifest(const std::string& repository, const Digest& digest,
                                           std::stop_token stop) override;
  absl::StatusOr<std::vector<Descriptor>> Referrers(const std::string& repository,
                                                    const Digest& subject,
                                                    const std::string& artifact_type,
                                                    std::stop_token stop) override;

 private:
  struct Mirror {
    std::unique_ptr<Store> store;
    MonoTime retry_at{};
    int failures = 0;
  };
  // Repository, digest, offset.
  using ReadKey = std::tuple<std::string, Digest, int64_t>;

  bool IsBackingOff(size_t mirror);
  void RecordResult(size_t mirror, const absl::Status& result);
  bool WasReadFromMirror(const ReadKey& key);
  void RecordMirrorRead(const ReadKey& key);

  const Clock& clock_;
  const Random random_;
  std::mutex mutex_;
  std::vector<Mirror> mirrors_;
  std::map<ReadKey, MonoTime> mirror_reads_;
};

}  // namespace cachewarm::bundle
