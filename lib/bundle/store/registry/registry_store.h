// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/bundle/store/registry/referrer_list.h"
#include "lib/bundle/store/registry/session.h"
#include "lib/bundle/store/store.h"
#include "lib/http/client.h"

namespace cachewarm::bundle {

struct RegistryOptions {
  SessionOptions session;
  std::string base;  // prefix of every repository; may be empty
  int64_t chunk_bytes = 8LL << 20;
};

// Stores bundles in an OCI registry (distribution-spec 1.1). Apart from the Session it keeps no
// state.
//
// Registries list only tags, and have no record of times. A manifest that is written under the tag
// of a key therefore also gets a tag of its own with the time (key_tag.h), under which it is found
// after the tag of the key has moved on. A manifest that is written again while it has the tag of
// the key gets at most one such tag an hour, whose time is rounded down to the hour.
class RegistryStore : public Store {
 public:
  // `clock` must outlive this object.
  RegistryStore(RegistryOptions options, std::unique_ptr<http::Client> client, const Clock& clock,
                Random random);

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

 private:
  // URL and token scopes of one repository.
  struct Address {
    std::string name;  // including the base: "base/team/llama"
    std::string url;   // "http://host/v2/base/team/llama"
    std::string pull;
    std::string push;
    std::string remove;
  };
  absl::StatusOr<Address> AddressOf(const std::string& repository) const;
  absl::StatusOr<std::string> GetManifest(const Address& address, const std::string& reference,
                                          std::stop_token stop);
  absl::Status PutManifest(const Address& address, const std::string& reference,
                           const std::string& bytes, std::stop_token stop);
  absl::StatusOr<http::Response> SendManifest(const http::Request& request,
                                              const std::string& scope, std::stop_token stop);
  ReferrerList ReferrersAt(const Address& address);
  // Returns all names of a paged list, such as the tags of a repository.
  absl::StatusOr<std::vector<std::string>> ListNames(std::string url, const std::string& scope,
                                                     std::string_view member, std::stop_token stop);
  // ResolveTag() without reading the manifest, if the registry states its digest. The digest is
  // unverified.
  absl::StatusOr<Digest> LookUpTag(const Address& address, const std::string& tag,
                                   std::stop_token stop);
  // Returns the tags of a repository, sorted; none if it does not exist.
  absl::StatusOr<std::vector<std::string>> ListTags(const Address& address, std::stop_token stop);
  absl::Status RemoveManifest(const Address& address, const Digest& digest, std::stop_token stop);
  // Writes a manifest under a second tag with the current time, rounded down to the hour if `tag`
  // names the manifest already.
  absl::Status WriteDatedTag(const std::string& repository, const std::string& bytes,
                             const std::string& tag, std::stop_token stop);

  const RegistryOptions options_;
  const Clock& clock_;
  const Random random_;
  Session session_;
};

}  // namespace cachewarm::bundle
