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

// "oci://host[:port][/base]" or "layout:///dir".
struct StoreUrl {
  enum class Kind { kRegistry, kLayout };
  Kind kind = Kind::kLayout;
  std::string host;       // kRegistry: "10.100.0.1:5000"
  std::string base;       // kRegistry: repository prefix, may be empty
  std::string directory;  // kLayout: absolute
};

absl::StatusOr<StoreUrl> ParseStoreUrl(std::string_view text);
// "host[:port][/base]": a registry that mirrors another one.
absl::StatusOr<StoreUrl> ParseMirror(std::string_view text);

// The least that a bandwidth limit may be: a layer of a few megabytes comes within minutes.
inline constexpr int64_t kBytesPerSecondMin = 64 << 10;

struct StoreOptions {
  std::string url;
  // Hosts ("10.100.0.1:5000") that are spoken to by plain http. Loopback always may be.
  std::vector<std::string> insecure_hosts;
  std::string ca_file;  // PEM, in addition to nothing else; empty: the system's
  // PEM chain and key that are shown to whoever asks for a certificate; both or none.
  std::string certificate_file;
  std::string key_file;
  std::string auth_file;  // a docker config.json with "auths"; empty: anonymous
  // Registries that are asked first, in order, for what has a digest (MirroredStore). With the
  // same authorities, and the credentials that auth_file has for them.
  std::vector<std::string> mirrors;
  int connections_max = 0;       // to each registry and in each direction; 0: no limit
  int64_t bytes_per_second = 0;  // of all blobs read together; 0: no limit
  http::ProxyOptions proxy;      // to registries, token servers and where they redirect to
};

// The store of that URL. `clock` must outlive it. Does not connect: Ping does. INVALID_ARGUMENT for
// mirrors of a directory.
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const StoreOptions& options, const Clock& clock);

}  // namespace cachewarm::bundle
