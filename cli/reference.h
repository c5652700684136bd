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

// How a user names a bundle: "oci://host[:port]/path/name[:tag|@sha256:hex]" or
// "layout:///directory/name[:tag|@sha256:hex]".
struct Reference {
  std::string store_url;   // "oci://host", "layout:///directory"
  std::string repository;  // "path/name"; of a layout: "name"
  std::string tag;         // empty when a digest is given, or neither
  Digest digest;           // empty when a tag is given, or neither

  static absl::StatusOr<Reference> Parse(std::string_view text);
  // "oci://host/path/name"
  std::string ToString() const { return store_url + "/" + repository; }
};

// What a registry needs and a network allows: of every verb that opens a store.
std::span<const Option> StoreOptionList();

// An open store with one of its repositories.
struct OpenedReference {
  Reference reference;
  std::shared_ptr<bundle::Store> store;

  bundle::RepositoryRef place() const { return {*store, reference.repository}; }
  // The digest that the reference names; a tag is looked up. INVALID_ARGUMENT with neither.
  absl::StatusOr<Digest> Resolve(std::stop_token stop) const;
};

// Through the proxies of the environment unless --proxy names one.
absl::StatusOr<OpenedReference> OpenReference(const std::string& text, const Arguments& arguments,
                                              const Console& console);

}  // namespace cachewarm::cli
