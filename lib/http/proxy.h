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

// Which proxy stands between us and a server; empty texts are none. Given as people give them to
// other programs in HTTPS_PROXY, HTTP_PROXY and NO_PROXY.
struct ProxyOptions {
  std::string https;     // "http://proxy.local:3128", or without the scheme: for https URLs
  std::string http;      // the same for http URLs
  std::string no_proxy;  // "a.local,.b.local,10.0.0.0/8,c.local:5000": who is spoken to directly
};

// The proxy as a URL. INVALID_ARGUMENT unless it is http://host[:port] (a proxy that is itself
// spoken to by TLS or SOCKS is not supported), and for credentials in it: those would end up in
// logs and process lists.
absl::StatusOr<Url> ParseProxy(std::string_view text);

// Fills what is empty from HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or their names in lower case.
// INVALID_ARGUMENT, naming the variables, when the result is bad.
absl::Status TakeProxies(
    const std::function<std::optional<std::string>(const std::string&)>& environment,
    ProxyOptions& to);

// What is in NO_PROXY, read like Go's golang.org/x/net/http/httpproxy reads it, because a cluster's
// other programs do: "*" is everybody; a name is itself and all below it; with a leading dot or
// "*." only what is below; an address is itself; CIDR is the addresses in it, not the names that
// resolve to them; ":port" restricts to that port. Loopback is always direct.
class ProxyRules {
 public:
  // INVALID_ARGUMENT names what is wrong with a proxy or an entry.
  static absl::StatusOr<ProxyRules> Make(const ProxyOptions& options);

  // nullopt: directly.
  std::optional<Url> For(const Url& url) const;

 private:
  struct Exception {
    std::string name;     // lower case, without leading dot; empty: every one
    bool itself = true;   // the name, not only what is below it
    uint16_t port = 0;    // 0: any
    std::string address;  // in network byte order: of a CIDR or an address
    int prefix_bits = 0;
  };
  static absl::StatusOr<Exception> ParseException(std::string_view entry);
  static bool Matches(const Exception& exception, const Url& url);

  std::optional<Url> https_;
  std::optional<Url> http_;
  std::vector<Exception> exceptions_;
};

}  // namespace cachewarm::http
