// SPDX-License-Identifier: Apache-2.0
#include "cli/reference.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/http/proxy.h"

namespace cachewarm::cli {
namespace {

constexpr std::string_view kLayout = "layout://";
constexpr std::string_view kOci = "oci://";

absl::Status Malformed(std::string_view text, std::string_view problem) {
  return UsageError(
      fmt::format("bundle \"{}\": {}; expected oci://host/path/name[:tag|@sha256:hex] or "
                  "layout:///directory/name[:tag|@sha256:hex]",
                  text, problem));
}

// Removes "@sha256:..." or ":tag" from the last component of `path` and sets it in `reference`.
absl::Status ParseSelector(std::string_view text, std::string& path, Reference& reference) {
  const size_t name = path.rfind('/') + 1;
  if (const size_t at = path.find('@', name); at != std::string::npos) {
    auto digest = Digest::Parse(path.substr(at + 1));
    if (!digest.ok()) {
      return Malformed(text, Message(digest.status()));
    }
    reference.digest = *std::move(digest);
    path.resize(at);
  } else if (const size_t colon = path.find(':', name); colon != std::string::npos) {
    reference.tag = path.substr(colon + 1);
    path.resize(colon);
    if (const absl::Status good = bundle::CheckTag(reference.tag); !good.ok()) {
      return Malformed(text, Message(good));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Reference> Reference::Parse(std::string_view text) {
  const bool layout = text.starts_with(kLayout);
  if (!layout && !text.starts_with(kOci)) {
    return Malformed(text, "unknown scheme");
  }
  const std::string_view scheme = layout ? kLayout : kOci;
  std::string path(text.substr(scheme.size()));
  Reference reference;
  // An OCI host ends at the first slash; the directory of a layout ends at the last one.
  if (path.find('/') == std::string::npos) {
    return Malformed(text, "no name");
  }
  CW_RETURN_IF_ERROR(ParseSelector(text, path, reference));
  const size_t slash = layout ? path.rfind('/') : path.find('/');
  reference.store_url = fmt::format("{}{}", scheme, path.substr(0, slash));
  reference.repository = path.substr(slash + 1);
  if (const absl::Status good = bundle::CheckRepository(reference.repository); !good.ok()) {
    return Malformed(text, Message(good));
  }
  CW_RETURN_IF_ERROR(bundle::ParseStoreUrl(reference.store_url).status());
  return reference;
}

namespace {

absl::Status FindProxies(const Arguments& arguments, const Console& console,
                         http::ProxyOptions& proxy) {
  if (const std::string own = arguments.Value("proxy"); !own.empty()) {
    proxy.https = proxy.http = own;
  }
  return http::ReadProxies(
      [&console](const std::string& name) { return std::optional(console.Environment(name)); },
      proxy);
}

}  // namespace

std::span<const Option> StoreOptionList() {
  static constexpr std::array<Option, 8> kOptions = {{
      {.name = "auth-file",
       .value = "FILE",
       .help = "docker config.json with the registry's credentials in \"auths\""},
      {.name = "ca-file",
       .value = "FILE",
       .help = "PEM file of CA certificates for registries (default: system)"},
      {.name = "client-certificate",
       .value = "FILE",
       .help = "PEM file of the client certificate chain, for registries that require one"},
      {.name = "client-key",
       .value = "FILE",
       .help = "PEM file of the private key of the client certificate"},
      {.name = "insecure-host",
       .value = "HOST[:PORT]",
       .help = "access this registry over plain HTTP (always allowed for loopback)",
       .repeats = true},
      {.name = "mirror",
       .value = "HOST[:PORT][/BASE]",
       .help = "mirror to try before the registry for requests by digest",
       .repeats = true},
      {.name = "proxy",
       .value = "http://HOST[:PORT]",
       .help = "proxy to registries (default: HTTPS_PROXY, HTTP_PROXY)",
       .check = [](const std::string& proxy) { return http::ParseProxy(proxy).status(); }},
      {.name = "bytes-per-second",
       .value = "NUMBER",
       .help = "maximum bytes per second of all downloads together, at least 65536",
       .range = Range{.min = bundle::kBytesPerSecondMin}},
  }};
  return kOptions;
}

absl::StatusOr<std::unique_ptr<bundle::Store>> OpenStoreUrl(const std::string& url,
                                                            const Arguments& arguments,
                                                            const Console& console) {
  bundle::StoreOptions options{.url = url,
                               .insecure_hosts = arguments.Values("insecure-host"),
                               .ca_file = arguments.Value("ca-file"),
                               .certificate_file = arguments.Value("client-certificate"),
                               .key_file = arguments.Value("client-key"),
                               .auth_file = arguments.Value("auth-file")};
  options.bytes_per_second = arguments.Number("bytes-per-second", options.bytes_per_second);
  if (options.url.starts_with(kOci)) {
    options.mirrors = arguments.Values("mirror");
    CW_RETURN_IF_ERROR(FindProxies(arguments, console, options.proxy));
  }
  return bundle::OpenStore(options, console.clock);
}

absl::StatusOr<OpenedReference> OpenReference(const std::string& text, const Arguments& arguments,
                                              const Console& console) {
  OpenedReference opened;
  CW_ASSIGN_OR_RETURN(opened.reference, Reference::Parse(text));
  CW_ASSIGN_OR_RETURN(opened.store, OpenStoreUrl(opened.reference.store_url, arguments, console));
  return opened;
}

absl::StatusOr<Digest> OpenedReference::Resolve(std::stop_token stop) const {
  if (!reference.digest.empty()) {
    return reference.digest;
  }
  if (reference.tag.empty()) {
    return UsageError(fmt::format("bundle \"{}\": add :tag or @sha256:hex to select a bundle",
                                  reference.ToString()));
  }
  return store->ResolveTag(reference.repository, reference.tag, stop);
}

}  // namespace cachewarm::cli
