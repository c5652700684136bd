// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/http/text/url.h"

namespace cachewarm::http {

// The proxies, in the syntax of HTTPS_PROXY, HTTP_PROXY and NO_PROXY; an empty text means none.
struct ProxyOptions {
  std::string https;     // for https URLs: "http://proxy.local:3128"; the scheme may be omitted
  std::string http;      // for http URLs, in the same form
  std::string no_proxy;  // "a.local,.b.local,10.0.0.0/8,c.local:5000": hosts to contact directly
  // For every URL, in the same form; the fields above have no effect then, and loopback hosts use
  // it, too. A kubeconfig names such a proxy.
  std::string always;
};

// Parses a proxy URL of the form http://host[:port]; the scheme may be omitted. INVALID_ARGUMENT
// for any other form: proxies over TLS or SOCKS are not supported, and credentials in the URL would
// appear in logs and process lists.
absl::StatusOr<Url> ParseProxy(std::string_view text);

// Fills empty fields from HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or from their lower-case variants.
// INVALID_ARGUMENT if a value is malformed.
absl::Status ReadProxies(
    const std::function<std::optional<std::string>(const std::string&)>& environment,
    ProxyOptions& to);

// Decides which URLs use a proxy. Interprets NO_PROXY as golang.org/x/net/http/httpproxy does,
// because the other programs of a cluster do so, too. An entry of NO_PROXY is one of
//   *                every host
//   name             the host and all its subdomains
//   .name or *.name  only the subdomains
//   address          that address
//   CIDR             the addresses in it, but no names that resolve to them
// A name or address may end with ":port", which restricts the entry to that port. Loopback hosts
// are contacted directly, except with ProxyOptions::always.
class ProxyRules {
 public:
  // INVALID_ARGUMENT if a proxy or an entry of NO_PROXY is malformed.
  static absl::StatusOr<ProxyRules> Make(const ProxyOptions& options);

  // Returns the proxy for `url`, or nullopt for a direct connection.
  std::optional<Url> For(const Url& url) const;

 private:
  struct Exception {
    std::string name;     // lower case, without leading dot; empty: any host
    bool itself = true;   // matches the name itself, not only subdomains
    uint16_t port = 0;    // 0: any port
    std::string address;  // of a CIDR or address entry, in network byte order; empty for a name
    int prefix_bits = 0;  // number of leading bits of `address` that must match
  };
  static absl::StatusOr<Exception> ParseException(std::string_view entry);
  static bool Matches(const Exception& exception, const Url& url);

  std::optional<Url> always_;
  std::optional<Url> https_;
  std::optional<Url> http_;
  std::vector<Exception> exceptions_;
};

}  // namespace cachewarm::http
