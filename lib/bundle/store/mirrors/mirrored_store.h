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

// Reads blobs and manifests, which are named by their digest, from mirrors first. Tags, writes and
// HasBlob() use the origin only, because a mirror may be outdated. Referrers() asks the mirrors
// only if the origin fails. Thread-safe.
//
// Tries the mirrors in order, then the origin. A mirror that fails is skipped for 30 s, and for up
// to 10 min while it keeps failing. NOT_FOUND does not count as a failure. Bytes that a mirror
// delivered before it failed are kept: the next mirror continues after them.
//
// Mirrors are not trusted. ReadBlob() does not verify blobs, so the caller detects wrong bytes:
//   - During the read: the sink returns DATA_LOSS, and the mirror counts as failed at once.
//   - After the read: the caller reads the range again, and this second read uses only the origin.
//     For that purpose, the ranges that mirrors delivered are remembered for 10 min.
class MirroredStore : public ForwardingStore {
 public:
  // `clock` must outlive this object.
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
  // Repository, digest and offset of a read.
  using ReadKey = std::tuple<std::string, Digest, int64_t>;

  bool IsBackingOff(size_t mirror);
  void RecordResult(size_t mirror, const absl::Status& result);
  bool WasReadFromMirror(const ReadKey& key);
  void RecordMirrorRead(const ReadKey& key);

  const Clock& clock_;
  const Random random_;
  std::mutex mutex_;
  std::vector<Mirror> mirrors_;
  std::map<ReadKey, MonoTime> mirror_reads_;  // reads from mirrors: when each one is forgotten
};

}  // namespace cachewarm::bundle
