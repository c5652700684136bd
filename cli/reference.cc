// SPDX-License-Identifier: Apache-2.0
#include "cli/reference.h"

#include <array>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::cli {
namespace {

constexpr std::string_view kLayout = "layout://";
constexpr std::string_view kOci = "oci://";

absl::Status Malformed(std::string_view text, std::string_view problem) {
  return absl::InvalidArgumentError(
      fmt::format("bundle \"{}\": {}; expected oci://host/path/name[:tag|@sha256:hex] or "
                  "layout:///directory/name[:tag|@sha256:hex]",
                  text, problem));
}

// Takes "@sha256:..." or ":tag" from the last component of `path`.
absl::Status TakeSelector(std::string_view text, std::string& path, Reference& reference) {
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
  // The first slash ends an OCI host; the last one a layout's directory.
  if (path.find('/') == std::string::npos) {
    return Malformed(text, "no name");
  }
  CW_RETURN_IF_ERROR(TakeSelector(text, path, reference));
  const size_t slash = layout ? path.rfind('/') : path.find('/');
  reference.store_url = fmt::format("{}{}", scheme, path.substr(0, slash));
  reference.repository = path.substr(slash + 1);
  if (const absl::Status good = bundle::CheckRepository(reference.repository); !good.ok()) {
    return Malformed(text, Message(good));
  }
  CW_RETURN_IF_ERROR(bundle::ParseStoreUrl(reference.store_url).status());
  return reference;
}

std::span<const Option> StoreOptionList() {
  static constexpr std::array<Option, 4> kOptions = {{
      {.name = "auth-file",
       .value = "FILE",
       .help = "docker config.json whose \"auths\" hold the registry's user and password"},
      {.name = "ca-file",
       .value = "FILE",
       .help = "PEM file of the authorities to trust instead of the system's"},
      {.name = "insecure-host",
       .value = "HOST[:PORT]",
       .help = "speak plain http to this registry (loopback always does)",
       .repeats = true},
      {.name = "mirror",
       .value = "HOST[:PORT][/BASE]",
       .help = "ask this registry first for what has a digest",
       .repeats = true},
  }};
  return kOptions;
}

absl::StatusOr<OpenedReference> OpenReference(const std::string& text, const Arguments& arguments,
                                              const Clock& clock) {
  OpenedReference opened;
  CW_ASSIGN_OR_RETURN(opened.reference, Reference::Parse(text));
  CW_ASSIGN_OR_RETURN(opened.store,
                      bundle::OpenStore({.url = opened.reference.store_url,
                                         .insecure_hosts = arguments.Values("insecure-host"),
                                         .ca_file = arguments.Value("ca-file"),
                                         .auth_file = arguments.Value("auth-file"),
                                         .mirrors = arguments.Values("mirror")},
                                        clock));
  return opened;
}

absl::StatusOr<Digest> OpenedReference::Resolve(std::stop_token stop) const {
  if (!reference.digest.empty()) {
    return reference.digest;
  }
  if (reference.tag.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "bundle \"{}\": add :tag or @sha256:hex to say which one", reference.ToString()));
  }
  return store->ResolveTag(reference.repository, reference.tag, stop);
}

}  // namespace cachewarm::cli
