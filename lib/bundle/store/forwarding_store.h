// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "lib/bundle/store/store.h"

namespace cachewarm::bundle {

// The methods of a Store.
enum class StoreOperation {
  kHasBlob,
  kReadBlob,
  kStartBlob,
  kMountBlob,
  kReadManifest,
  kResolveTag,
  kWriteManifest,
  kReferrers,
  kWriteReferrer,
  kListRepositories,
  kListManifests,
  kCheckUnchanged,
  kDeleteManifest,
  kSweepBlobs,
  kPing,
};

// Returns the name for metrics, such as "read_blob"; "write_blob" for kStartBlob.
std::string_view NameOf(StoreOperation operation);
// True if the operation changes the store.
bool IsWrite(StoreOperation operation);

// Forwards every call to another store. Base class of decorators. A decorator that treats all
// operations alike overrides Call(); one that changes a single method overrides that method. As
// thread-safe as the inner store.
class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(std::unique_ptr<Store> inner);
  // Borrows `inner`, which must outlive this store.
  explicit ForwardingStore(Store& inner);
  ~ForwardingStore() override;

  absl::StatusOr<bool> HasBlob(const std::string& repository, const Digest& digest,
                               std::stop_token stop) override;
  absl::Status ReadBlob(const std::string& repository, const BlobRange& range, Sink& sink,
                        std::stop_token stop) override;
  absl::StatusOr<std::unique_ptr<BlobUpload>> StartBlob(const std::string& repository,
                                                        std::stop_token stop) override;
  absl::StatusOr<bool> MountBlob(const std::string& from, const std::string& repository,
                                 const Digest& digest, std::stop_token stop) override;
  absl::StatusOr<std::string> ReadManifest(const std::string& repository, const Digest& digest,
                                           std::stop_token stop) override;
  absl::StatusOr<Digest> ResolveTag(const std::string& repository, const std::string& tag,
                                    std::stop_token stop) override;
  absl::StatusOr<Digest> WriteManifest(const std::string& repository, const std::string& bytes,
                                       const std::string& tag, std::stop_token stop) override;
  absl::StatusOr<std::vector<Descriptor>> Referrers(const std::string& repository,
                                                    const Digest& subject,
                                                    const std::string& artifact_type,
                                                    std::stop_token stop) override;
  absl::StatusOr<Digest> WriteReferrer(const std::string& repository, const std::string& bytes,
                                       std::stop_token stop) override;
  absl::StatusOr<std::vector<std::string>> ListRepositories(std::stop_token stop) override;
  absl::StatusOr<ManifestList> ListManifests(const std::string& repository,
                                             std::stop_token stop) override;
  absl::Status CheckUnchanged(const std::string& repository, const StoredManifest& listed,
                              std::stop_token stop) override;
  absl::Status DeleteManifest(const std::string& repository, const StoredManifest& listed,
                              std::stop_token stop) override;
  absl::StatusOr<SweepReport> SweepBlobs(const std::string& repository, const SweepRequest& request,
                                         std::stop_token stop) override;
  absl::Status Ping(std::stop_token stop) override;

 protected:
  // Calls the inner store once. Returns the number of manifest bytes that were transferred (0 for
  // operations without a manifest), or the error of the inner store.
  using Attempt = absl::FunctionRef<absl::StatusOr<int64_t>()>;

  // Every method of this class calls the inner store through Call(). An override runs `attempt` any
  // number of times. If it returns OK, it must have run `attempt` at least once, and the caller
  // gets the result of the last run. Otherwise the caller gets the returned error.
  virtual absl::Status Call(StoreOperation operation, const std::stop_token& stop, Attempt attempt);

  Store& inner() { return inner_; }

 private:
  template <typename Run>
  auto Forward(StoreOperation operation, const std::stop_token& stop, Run run);

  const std::unique_ptr<Store> owned_;  // null if borrowed
  Store& inner_;
};

}  // namespace cachewarm::bundle
