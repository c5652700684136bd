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
  std::string https;     // for https URLs: "http://proxy.local:3128", also without the scheme
  std::string http;      // for http URLs, in the same form
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

// Decides which URLs use a proxy. Reads NO_PROXY as Go's golang.org/x/net/http/httpproxy does,
// because the other programs of a cluster do so, too: "*" is every host; a name is the host itself
// and all its subdomains; with a leading dot or "*." only the subdomains; an address is itself; a
// CIDR is the addresses in it, but no names that resolve to them; ":port" restricts an entry to
// that port. Loopback hosts are always contacted directly.
class ProxyRules {
 public:
  // INVALID_ARGUMENT describes a malformed proxy or entry of NO_PROXY.
  static absl::StatusOr<ProxyRules> Make(const ProxyOptions& options);

  // Returns the proxy for `url`, or nullopt for a direct connection.
  std::optional<Url> For(const Url& url) const;

 private:
  struct Exception {
    std::string name;     // lower case, without leading dot; empty: any host
    bool itself = true;   // matches the name itself, not only subdomains
    uint16_t port = 0;    // 0: any port
    std::string address;  // bytes of the CIDR or address in network byte order; empty: a name
    int prefix_bits = 0;
  };
  static absl::StatusOr<Exception> ParseException(std::string_view entry);
  static bool Matches(const Exception& exception, const Url& url);

  std::optional<Url> https_;
  std::optional<Url> http_;
  std::vector<Exception> exceptions_;
};

}  // namespace cachewarm::http
