// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/open.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "lib/bundle/store/layout/layout_store.h"
#include "lib/bundle/store/registry/registry_store.h"
#include "lib/http/client.h"
#include "lib/http/url.h"

namespace cachewarm::bundle {
namespace {

constexpr std::string_view kOci = "oci://";
constexpr std::string_view kLayout = "layout://";
constexpr size_t kUrlBytesMax = 4096;

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
    return BadUrl(text, "credentials belong into the auth file");
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

// Plain http only where an administrator said so, or where no network sees it.
absl::StatusOr<bool> IsPlain(const StoreUrl& url, const StoreOptions& options) {
  CW_ASSIGN_OR_RETURN(const http::Url parsed,
                      http::Url::Parse(fmt::format("https://{}/", url.host)));
  return Contains(options.insecure_hosts, url.host) ||
         Contains(options.insecure_hosts, parsed.host) ||
         (http::IsLoopback(parsed.host) && options.ca_file.empty());
}

absl::StatusOr<std::unique_ptr<Store>> OpenRegistry(const StoreUrl& url,
                                                    const StoreOptions& options,
                                                    const Clock& clock) {
  CW_ASSIGN_OR_RETURN(const bool plain, IsPlain(url, options));
  CW_ASSIGN_OR_RETURN(const http::Url origin, http::Url::Parse(fmt::format(
                                                  "{}://{}/", plain ? "http" : "https", url.host)));
  http::ClientOptions client_options{.tls = {.ca_file = options.ca_file}};
  if (plain) {
    client_options.plain_http_hosts.push_back(origin.host);
  }
  CW_ASSIGN_OR_RETURN(std::unique_ptr<http::Client> client, http::MakeClient(client_options));
  return std::make_unique<RegistryStore>(
      RegistryOptions{
          .session = {.origin = origin.Origin(), .host = url.host, .auth_file = options.auth_file},
          .base = url.base},
      std::move(client), clock, SystemRandom());
}

}  // namespace

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
    return std::make_unique<LayoutStore>(url.directory, clock);
  }
  return OpenRegistry(url, options, clock);
}

}  // namespace cachewarm::bundle
