// SPDX-License-Identifier: Apache-2.0
#include "lib/http/proxy.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/http/text/ascii.h"

namespace cachewarm::http {
namespace {

constexpr size_t kExceptionsMax = 1024;

// Returns the four or sixteen bytes of the address `host`; empty if `host` is not an address.
std::string AddressOf(const std::string& host) {
  char bytes[sizeof(in6_addr)];
  if (inet_pton(AF_INET, host.c_str(), bytes) == 1) {
    return {bytes, sizeof(in_addr)};
  }
  return inet_pton(AF_INET6, host.c_str(), bytes) == 1 ? std::string(bytes, sizeof(in6_addr))
                                                       : std::string();
}

bool SharesPrefix(const std::string& a, const std::string& b, int bits) {
  const auto whole = static_cast<size_t>(bits / 8);
  if (a.size() != b.size() || a.compare(0, whole, b, 0, whole) != 0) {
    return false;
  }
  const int rest = bits % 8;
  return rest == 0 || (static_cast<unsigned char>(a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

template <typename T>
bool ParseNumber(std::string_view text, T& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc() && end == text.data() + text.size();
}

absl::Status BadException(std::string_view entry) {
  return absl::InvalidArgumentError(
      fmt::format("NO_PROXY entry \"{}\": expected a name, .name, address, CIDR or *; a name or "
                  "address may end with :port; separate entries with commas",
                  entry.substr(0, 200)));
}

absl::StatusOr<std::optional<Url>> Optional(std::string_view text) {
  if (text.empty()) {
    return std::optional<Url>();
  }
  CW_ASSIGN_OR_RETURN(Url url, ParseProxy(text));
  return std::optional<Url>(std::move(url));
}

}  // namespace

absl::StatusOr<Url> ParseProxy(std::string_view text) {
  // The message never quotes text that may contain a password.
  if (text.find('@') != std::string_view::npos) {
    return absl::InvalidArgumentError(
        "a proxy URL with user and password is not supported; name a proxy that needs none");
  }
  const auto refuse = [text](std::string_view problem) {
    return absl::InvalidArgumentError(
        fmt::format("proxy \"{}\": {}; expected http://host[:port]", text.substr(0, 200), problem));
  };
  const bool has_scheme = text.find("://") != std::string_view::npos;
  auto url = Url::Parse(has_scheme ? std::string(text) : fmt::format("http://{}", text));
  if (!url.ok()) {
    return refuse("it is malformed");
  }
  if (url->scheme != "http") {
    return refuse("a connection to the proxy over TLS is not supported");
  }
  if (url->target != "/") {
    return refuse("it has a path");
  }
  return url;
}

absl::Status ReadProxies(
    const std::function<std::optional<std::string>(const std::string&)>& environment,
    ProxyOptions& to) {
  const auto take = [&environment](const char* upper, const char* lower, std::string& into) {
    for (const char* name : {upper, lower}) {
      if (into.empty()) {
        into = environment(name).value_or("");
      }
    }
  };
  take("HTTPS_PROXY", "https_proxy", to.https);
  take("HTTP_PROXY", "http_proxy", to.http);
  take("NO_PROXY", "no_proxy", to.no_proxy);
  return Annotate(ProxyRules::Make(to).status(), "HTTPS_PROXY, HTTP_PROXY, NO_PROXY");
}

absl::StatusOr<ProxyRules> ProxyRules::Make(const ProxyOptions& options) {
  ProxyRules rules;
  CW_ASSIGN_OR_RETURN(rules.always_, Optional(options.always));
  CW_ASSIGN_OR_RETURN(rules.https_, Optional(options.https));
  CW_ASSIGN_OR_RETURN(rules.http_, Optional(options.http));
  std::string_view rest = options.no_proxy;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find_first_of(", "), rest.size());
    if (end > 0) {
      CW_ASSIGN_OR_RETURN(Exception exception, ParseException(rest.substr(0, end)));
      rules.exceptions_.push_back(std::move(exception));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (rules.exceptions_.size() > kExceptionsMax) {
    return absl::InvalidArgumentError(fmt::format(
        "NO_PROXY has more than {} entries: list networks (CIDR) instead of single addresses",
        kExceptionsMax));
  }
  return rules;
}

absl::StatusOr<ProxyRules::Exception> ProxyRules::ParseException(std::string_view entry) {
  Exception exception;
  std::string name = Lower(entry);
  if (name == "*") {
    return exception;
  }
  if (const size_t slash = name.find('/'); slash != std::string::npos) {
    exception.address = AddressOf(name.substr(0, slash));
    const auto bits_max = static_cast<int>(exception.address.size()) * 8;
    if (exception.address.empty() ||
        !ParseNumber(std::string_view(name).substr(slash + 1), exception.prefix_bits) ||
        exception.prefix_bits < 0 || exception.prefix_bits > bits_max) {
      return BadException(entry);
    }
    return exception;
  }
  exception.address = AddressOf(name);
  if (exception.address.empty()) {
    // Parses the entry as a URL, because the URL parser handles brackets, ports and host names.
    exception.itself = !name.starts_with('.') && !name.starts_with("*.");
    name.erase(0, name.starts_with("*.") ? 2 : (exception.itself ? 0 : 1));
    const auto url = Url::Parse(fmt::format("http://{}/", name));
    if (!url.ok()) {
      return BadException(entry);
    }
    exception.name = url->host;
    exception.address = AddressOf(url->host);
    const size_t colon = name.rfind(':');
    const bool has_port = colon != std::string::npos && name.find(']', colon) == std::string::npos;
    exception.port = has_port ? url->port : uint16_t{0};
  }
  exception.prefix_bits = static_cast<int>(exception.address.size()) * 8;
  return exception;
}

bool ProxyRules::Matches(const Exception& exception, const Url& url) {
  if (exception.port != 0 && exception.port != url.port) {
    return false;
  }
  if (!exception.address.empty()) {
    return SharesPrefix(exception.address, AddressOf(url.host), exception.prefix_bits);
  }
  if (exception.name.empty()) {
    return true;
  }
  return (exception.itself && url.host == exception.name) ||
         url.host.ends_with("." + exception.name);
}

std::optional<Url> ProxyRules::For(const Url& url) const {
  if (always_.has_value()) {
    return always_;
  }
  const std::optional<Url>& proxy = url.scheme == "https" ? https_ : http_;
  const bool direct =
      IsLoopback(url.host) || std::any_of(exceptions_.begin(), exceptions_.end(),
                                          [&url](const Exception& e) { return Matches(e, url); });
  return direct ? std::nullopt : proxy;
}

}  // namespace cachewarm::http
