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

// Transfers whole bundles between trees and stores. Every function blocks, and returns CANCELLED
// soon after `stop`. Other errors are those of the store unless stated otherwise.
namespace cachewarm::bundle {

// Reports the layer bytes transferred so far. Called often, on the caller's thread; must not block.
using OnProgress = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

// One repository of a store.
struct RepositoryRef {
  Store& store;
  std::string repository;
};

struct Publication {
  Digest digest;
  int64_t bytes = 0;      // size of config and layers
  int64_t new_bytes = 0;  // size of config and new layer, without the layers of the base bundle
  int64_t files = 0;
  int64_t raw_bytes = 0;  // total size of the files
};

struct PublishOptions {
  std::string tag;  // moved to the new bundle; empty: no tag
  PackOptions pack;
};

// Packs `files` directly into the repository; the bundle is readable on return. A failure leaves
// only unreferenced blobs. If the repository lacks a layer of the base, packs all files without the
// base; with keep_base, returns FAILED_PRECONDITION instead. Other errors are those of Pack() and
// of the store.
absl::StatusOr<Publication> Publish(const RepositoryRef& ref, std::vector<PackFile> files,
                                    const Facts& facts, const PublishOptions& options,
                                    std::stop_token stop);

// Reads and verifies the manifest and the config of the bundle `digest`. INVALID_ARGUMENT if the
// manifest or the config is not that of a bundle.
absl::StatusOr<Bundle> ReadBundle(const RepositoryRef& ref, const Digest& digest,
                                  std::stop_token stop);

// Arguments of Extract(), which unpacks `bundle` into `staging`. If `options.sync` is set, all
// files are durable on return. Errors, and the state of `staging` after an error, are as for
// Unpacker.
struct Extraction {
  const Bundle& bundle;
  const fs::Dir& staging;
  UnpackOptions options;
  OnProgress on_progress;
};
absl::Status Extract(const RepositoryRef& ref, const Extraction& extraction, std::stop_token stop);

// Options of Verify(), which reads and verifies all bytes of `bundle` with DefaultThreads()
// threads. Errors: DATA_LOSS and INVALID_ARGUMENT as for Unpacker.
struct Verification {
  OnProgress on_progress;
  Limits limits;
};
absl::Status Verify(const RepositoryRef& ref, const Bundle& bundle,
                    const Verification& verification, std::stop_token stop);

// Result of CopyBundle(), which copies a bundle unchanged. CopyBundle() transfers only the blobs
// that `to` lacks, and moves `tag` to the bundle unless `tag` is empty. If `from` and `to` are in
// the same store, it mounts blobs where possible instead of transferring them. DATA_LOSS if a blob
// of `from` does not match its digest.
struct CopyReport {
  int64_t copied_bytes = 0;   // size of the transferred blobs
  int64_t present_bytes = 0;  // size of the blobs that were present or were mounted
};
absl::StatusOr<CopyReport> CopyBundle(const RepositoryRef& from, const RepositoryRef& to,
                                      const Bundle& bundle, const std::string& tag,
                                      std::stop_token stop);

}  // namespace cachewarm::bundle
