// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/open.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "lib/bundle/store/layout/layout_store.h"
#include "lib/bundle/store/limited/limited_store.h"
#include "lib/bundle/store/mirrors/mirrored_store.h"
#include "lib/bundle/store/registry/registry_store.h"
#include "lib/bundle/store/retry/retry_store.h"
#include "lib/http/client.h"
#include "lib/http/text/url.h"

namespace cachewarm::bundle {
namespace {

constexpr std::string_view kOci = "oci://";
constexpr std::string_view kLayout = "layout://";
constexpr size_t kUrlBytesMax = 4096;
constexpr int kTries = 4;
// A server that delivers less is left out like one that does not answer.
constexpr http::RateFloorLimits kRateFloor{.bytes_min = 60 << 10, .window = Duration(60'000)};
constexpr int kMirrorTries = 1;  // on failure the next mirror is tried instead

absl::Status BadUrl(std::string_view text, std::string_view reason) {
  return absl::InvalidArgumentError(
      fmt::format("store \"{}\": {}; expected oci://host[:port][/base] or layout:///directory",
                  text.substr(0, kUrlBytesMax), reason));
}

absl::StatusOr<StoreUrl> ParseLayout(std::string_view text) {
  const std::string_view path = text.substr(kLayout.size());
  if (path.empty() || path.front() != '/' || path.find('\0') != std::string_view::npos) {
    return BadUrl(text, "the directory must be absolute");
  }
  return StoreUrl{.kind = StoreUrl::Kind::kLayout, .directory = std::string(path)};
}

absl::StatusOr<StoreUrl> ParseRegistry(std::string_view text) {
  std::string_view rest = text.substr(kOci.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view host = rest.substr(0, slash);
  std::string_view base = rest.substr(std::min(slash + 1, rest.size()));
  while (base.ends_with('/')) {
    base.remove_suffix(1);
  }
  if (host.find('@') != std::string_view::npos) {
    return BadUrl(text, "credentials belong in the auth file");
  }
  const auto parsed = http::Url::Parse(fmt::format("https://{}/", host));
  if (host.empty() || !parsed.ok()) {
    return BadUrl(text, "the host is malformed");
  }
  if (!base.empty()) {
    if (const absl::Status good = CheckRepository(base); !good.ok()) {
      return BadUrl(text, Message(good));
    }
  }
  return StoreUrl{
      .kind = StoreUrl::Kind::kRegistry, .host = std::string(host), .base = std::string(base)};
}

bool Contains(const std::vector<std::string>& hosts, std::string_view host) {
  return std::find(hosts.begin(), hosts.end(), host) != hosts.end();
}

// True if `url` is accessed over plain http: a configured host, or loopback if no CA is configured.
absl::StatusOr<bool> UsesPlainHttp(const StoreUrl& url, const StoreOptions& options) {
  CW_ASSIGN_OR_RETURN(const http::Url parsed,
                      http::Url::Parse(fmt::format("https://{}/", url.host)));
  return Contains(options.insecure_hosts, url.host) ||
         Contains(options.insecure_hosts, parsed.host) ||
         (http::IsLoopback(parsed.host) && options.ca_file.empty());
}

absl::StatusOr<std::unique_ptr<Store>> OpenRegistry(const StoreUrl& url,
                                                    const StoreOptions& options, const Clock& clock,
                                                    int tries) {
  CW_ASSIGN_OR_RETURN(const bool plain, UsesPlainHttp(url, options));
  CW_ASSIGN_OR_RETURN(const http::Url origin, http::Url::Parse(fmt::format(
                                                  "{}://{}/", plain ? "http" : "https", url.host)));
  http::ClientOptions client_options{.tls = {.ca_file = options.ca_file,
                                             .certificate_file = options.certificate_file,
                                             .key_file = options.key_file},
                                     .proxy = options.proxy,
                                     .rate_floor = kRateFloor,
                                     .clock = &clock};
  if (plain) {
    client_options.plain_http_hosts.push_back(origin.host);
  }
  CW_ASSIGN_OR_RETURN(std::unique_ptr<http::Client> client, http::MakeClient(client_options));
  return std::make_unique<RegistryStore>(RegistryOptions{.session = {.origin = origin.Origin(),
                                                                     .host = url.host,
                                                                     .auth_file = options.auth_file,
                                                                     .tries = tries},
                                                         .base = url.base},
                                         std::move(client), clock, SystemRandom());
}

absl::StatusOr<std::unique_ptr<Store>> OpenMirrored(const StoreUrl& url,
                                                    const StoreOptions& options,
                                                    const Clock& clock) {
  StoreLimits limits{.connections = options.connections_max};
  if (options.bytes_per_second > 0) {
    limits.downloads = std::make_shared<Bandwidth>(options.bytes_per_second, clock);
  }
  const auto open = [&](const StoreUrl& from, int tries) -> absl::StatusOr<std::unique_ptr<Store>> {
    CW_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenRegistry(from, options, clock, tries));
    if (limits.connections == 0 && limits.downloads == nullptr) {
      return store;
    }
    return std::make_unique<LimitedStore>(std::move(store), limits);
  };
  CW_ASSIGN_OR_RETURN(std::unique_ptr<Store> origin, open(url, kTries));
  if (options.mirrors.empty()) {
    return origin;
  }
  std::vector<std::unique_ptr<Store>> mirrors;
  for (const std::string& text : options.mirrors) {
    CW_ASSIGN_OR_RETURN(const StoreUrl mirror, ParseMirror(text));
    CW_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, open(mirror, kMirrorTries));
    mirrors.push_back(std::move(store));
  }
  return std::make_unique<MirroredStore>(std::move(origin), std::move(mirrors), clock,
                                         SystemRandom());
}

}  // namespace

absl::StatusOr<StoreUrl> ParseMirror(std::string_view text) {
  const absl::StatusOr<StoreUrl> url =
      text.find("://") == std::string_view::npos && text.size() <= kUrlBytesMax
          ? ParseRegistry(fmt::format("{}{}", kOci, text))
          : absl::InvalidArgumentError("");
  return url.ok() ? url
                  : absl::InvalidArgumentError(
                        fmt::format("mirror \"{}\": expected host[:port][/base] without a scheme",
                                    text.substr(0, kUrlBytesMax)));
}

absl::StatusOr<StoreUrl> ParseStoreUrl(std::string_view text) {
  if (text.size() > kUrlBytesMax) {
    return BadUrl(text, "it is too long");
  }
  if (text.starts_with(kLayout)) {
    return ParseLayout(text);
  }
  if (text.starts_with(kOci)) {
    return ParseRegistry(text);
  }
  return BadUrl(text, "unknown scheme");
}

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const StoreOptions& options, const Clock& clock) {
  CW_ASSIGN_OR_RETURN(const StoreUrl url, ParseStoreUrl(options.url));
  if (url.kind == StoreUrl::Kind::kLayout) {
    if (!options.mirrors.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("store \"{}\": a directory has no mirrors; remove the mirrors, or use a "
                      "registry (oci://...)",
                      options.url));
    }
    return std::make_unique<RetryStore>(std::make_unique<LayoutStore>(url.directory, clock), clock,
                                        SystemRandom());
  }
  return OpenMirrored(url, options, clock);
}

}  // namespace cachewarm::bundle
