// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "lib/base/digest.h"
#include "lib/bundle/store/open.h"
#include "lib/bundle/transfer.h"

namespace cachewarm::cli {

// Name of a bundle on the command line: "oci://host[:port]/path/name[:tag|@sha256:hex]" or
// "layout:///directory/name[:tag|@sha256:hex]".
struct Reference {
  std::string store_url;   // "oci://host", "layout:///directory"
  std::string repository;  // "path/name"; in a layout only "name"
  std::string tag;         // empty if not given
  Digest digest;           // empty if not given

  static absl::StatusOr<Reference> Parse(std::string_view text);
  // Returns "oci://host/path/name".
  std::string ToString() const { return store_url + "/" + repository; }
};

// Options of verbs that open a store: credentials, TLS, mirrors, proxy and limits.
std::span<const Option> StoreOptionList();

// A parsed reference and its opened store.
struct OpenedReference {
  Reference reference;
  std::shared_ptr<bundle::Store> store;

  bundle::RepositoryRef place() const { return {*store, reference.repository}; }
  // Returns the digest of the reference; looks up a tag in the store. Errors: INVALID_ARGUMENT if
  // the reference has neither tag nor digest; else the store's error.
  absl::StatusOr<Digest> Resolve(std::stop_token stop) const;
};

// Opens the store `url` with the store options, as OpenReference() does.
absl::StatusOr<std::unique_ptr<bundle::Store>> OpenStoreUrl(const std::string& url,
                                                            const Arguments& arguments,
                                                            const Console& console);

// Parses `text` and opens its store with the store options. Uses the proxies that the environment
// variables name, unless --proxy is given.
absl::StatusOr<OpenedReference> OpenReference(const std::string& text, const Arguments& arguments,
                                              const Console& console);

}  // namespace cachewarm::cli
