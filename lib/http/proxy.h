// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/http/url.h"

namespace cachewarm::http {

// The proxies, in the syntax of HTTPS_PROXY, HTTP_PROXY and NO_PROXY; an empty text means none.
struct ProxyOptions {
  std::string https;     // "http://proxy.local:3128", or without the scheme: for https URLs
  std::string http;      // the same for http URLs
  std::string no_proxy;  // "a.local,.b.local,10.0.0.0/8,c.local:5000": hosts to contact directly
};

// Parses a proxy URL. INVALID_ARGUMENT unless it is http://host[:port] (proxies over TLS or SOCKS
// are not supported), and if it contains credentials: they would appear in logs and process lists.
absl::StatusOr<Url> ParseProxy(std::string_view text);

// Fills empty fields from HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or their lower-case names.
// INVALID_ARGUMENT names the variable of a malformed value.
absl::Status ReadProxies(
    const std::function<std::optional<std::string>(const std::string&)>& environment,
    ProxyOptions& to);

// The rules of NO_PROXY as Go's golang.org/x/net/http/httpproxy reads them, because the other
// programs of a cluster do: "*" is every host; a name is itself and all subdomains; with a leading
// dot or "*." only subdomains; an address is itself; a CIDR is the addresses in it, not names that
// resolve to them; ":port" restricts to that port. Loopback is always direct.
class ProxyRules {
 public:
  // INVALID_ARGUMENT describes a malformed proxy or entry.
  static absl::StatusOr<ProxyRules> Make(const ProxyOptions& options);

  // Returns the proxy for `url`, or nullopt for a direct connection.
  std::optional<Url> For(const Url& url) const;

 private:
  struct Exception {
    std::string name;     // lower case, without leading dot; empty: any
    bool itself = true;   // matches the name itself, not only subdomains
    uint16_t port = 0;    // 0: any
    std::string address;  // CIDR or address in network byte order
    int prefix_bits = 0;
  };
  static absl::StatusOr<Exception> ParseException(std::string_view entry);
  static bool Matches(const Exception& exception, const Url& url);

  std::optional<Url> https_;
  std::optional<Url> http_;
  std::vector<Exception> exceptions_;
};

}  // namespace cachewarm::http
