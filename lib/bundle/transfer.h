// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"
#include "lib/bundle/packer.h"
#include "lib/bundle/store/store.h"
#include "lib/bundle/unpacker.h"
#include "lib/fs/dir.h"

// A whole bundle between a tree and a store.
namespace cachewarm::bundle {

// Layer bytes done and to do. Called on the caller's thread, often; must be quick.
using OnProgress = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

struct RepositoryRef {
  Store& store;
  std::string repository;
};

struct Publication {
  Digest digest;
  int64_t bytes = 0;      // config and layers
  int64_t new_bytes = 0;  // of them, those that are not in a layer of the base
  int64_t files = 0;
  int64_t raw_bytes = 0;
};

struct PublishOptions {
  std::string tag;  // points to the bundle afterwards; empty: none
  PackOptions pack;
};

// Packs `files` straight into `ref`; the bundle is readable when it returns. A failure leaves at
// most unreferenced blobs. A base of which `ref` lacks a layer is not used; where it is to be
// kept, that is FAILED_PRECONDITION.
absl::StatusOr<Publication> Publish(const RepositoryRef& ref, std::vector<PackFile> files,
                                    const Facts& facts, const PublishOptions& options,
                                    std::stop_token stop);

// Manifest and config, verified down from the digest.
absl::StatusOr<Bundle> ReadBundle(const RepositoryRef& ref, const Digest& digest,
                                  std::stop_token stop);

// Streams the layers of `bundle` through an Unpacker into `staging` (see there what an error
// leaves behind), which is durable afterwards if `options` say so.
struct Extraction {
  const Bundle& bundle;
  const fs::Dir& staging;
  UnpackOptions options;
  OnProgress on_progress;
};
absl::Status Extract(const RepositoryRef& ref, const Extraction& extraction, std::stop_token stop);

// Reads all of `bundle`, checks every byte with DefaultThreads(), keeps nothing.
struct Verification {
  OnProgress on_progress;
  Limits limits;
};
absl::Status Verify(const RepositoryRef& ref, const Bundle& bundle,
                    const Verification& verification, std::stop_token stop);

// Copies a bundle byte by byte, only the blobs that `to` lacks. Within one Store they are mounted
// where it can; they count as present.
struct CopyReport {
  int64_t copied_bytes = 0;
  int64_t present_bytes = 0;
};
absl::StatusOr<CopyReport> CopyBundle(const RepositoryRef& from, const RepositoryRef& to,
                                      const Bundle& bundle, const std::string& tag,
                                      std::stop_token stop);

}  // namespace cachewarm::bundle
