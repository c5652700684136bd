// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/bundle/store/store.h"
#include "lib/http/proxy.h"

namespace cachewarm::bundle {

// Location of a store: "oci://host[:port][/base]" or "layout:///dir".
struct StoreUrl {
  enum class Kind { kRegistry, kLayout };
  Kind kind = Kind::kLayout;
  std::string host;       // kRegistry: "10.100.0.1:5000"
  std::string base;       // kRegistry: repository prefix, may be empty
  std::string directory;  // kLayout: absolute
};

// Parses a store URL. INVALID_ARGUMENT, naming the expected form, if it is malformed.
absl::StatusOr<StoreUrl> ParseStoreUrl(std::string_view text);
// Parses the location of a mirror, which is a registry without a scheme: "host[:port][/base]".
// INVALID_ARGUMENT if it is malformed.
absl::StatusOr<StoreUrl> ParseMirror(std::string_view text);

// Lowest allowed bandwidth limit. At this rate, a layer of a few megabytes still arrives within
// minutes.
inline constexpr int64_t kBytesPerSecondMin = 64 << 10;

struct StoreOptions {
  std::string url;
  // Registries ("10.100.0.1:5000") to access over plain http. Registries on loopback need not be
  // listed, unless ca_file is set.
  std::vector<std::string> insecure_hosts;
  std::string ca_file;  // PEM, replaces the system's certificate authorities; empty: the system's
  // PEM files of the client certificate chain and its key; set both or none.
  std::string certificate_file;
  std::string key_file;
  std::string auth_file;  // path of a docker config.json with "auths"; empty: anonymous
  // Registries from which blobs and manifests are read first, in this order (MirroredStore). They
  // use the same certificate authorities as the store, and auth_file may hold their credentials.
  std::vector<std::string> mirrors;
  // Maximum number of concurrent reads, and also of writes, per registry; 0: no limit.
  int connections_max = 0;
  int64_t bytes_per_second = 0;  // rate of all blob downloads together; 0: no limit
  http::ProxyOptions proxy;      // for registries, token servers and targets of redirects
};

// Opens the store of `options.url`. Does not connect to it: call Ping() to check that it can be
// reached. `clock` must outlive the store. INVALID_ARGUMENT if a URL is malformed, or if mirrors
// are given for a directory (layout://).
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const StoreOptions& options, const Clock& clock);

}  // namespace cachewarm::bundle
