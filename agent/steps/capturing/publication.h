// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/evidence/events.h"
#include "lib/bundle/transfer.h"
#include "lib/caches/cache_table.h"
#include "lib/capture/engine_factors.h"
#include "lib/capture/tree_listing.h"
#include "lib/fingerprint/node_facts.h"

namespace cachewarm::agent {

// Input of PublishTree(): one settled tree. All references must outlive the call.
struct PublishJob {
  bundle::Store& store;
  const fs::Dir& tree;
  const caches::CacheTable& table;
  const fingerprint::NodeFacts& node;
  api::CaptureRequest request;
  std::string ns;    // namespace of the warmup
  std::string name;  // name of the warmup
  // Bundles of the warmup that fit this node. If the key has no bundle yet, the new bundle shares
  // layers with one of these.
  std::vector<Digest> older;
  UsedFiles used;
  int threads = bundle::DefaultThreads();  // for reading and compressing
  std::string private_key_file;            // key that signs the bundle; empty: not signed
  // Of the builder's start; become part of the config of a bundle that extends no other.
  capture::EngineFactors engine_factors;
  // Called before every open of a file in the tree, by several threads concurrently.
  std::function<void(const std::string&)> on_opening;
};

struct Published {
  bundle::Publication publication;
  bool native = false;                 // a file of the bundle is native host code
  double stored_compile_seconds = 0;   // compile time noted in the cache entries; 0: none
  std::vector<std::string> truncated;  // "path: reason" of files left out as truncated
  api::LeftBehind left_behind;         // files of the tree that match no cache kind
};

// Checks that the key matches its factors, and that GPU type and CPU class match this node. Without
// these checks, a bundle could reach a CPU that cannot run it. Errors: FAILED_PRECONDITION.
absl::Status CheckRequest(const api::CaptureRequest& request, const fingerprint::NodeFacts& node);

// Returns the files that the builder used, and the files that belong in the same bundle as these
// (CacheTable::SelectUsed()).
std::vector<capture::TreeFile> FilterUsed(std::vector<capture::TreeFile> files,
                                          const caches::CacheTable& table, const UsedFiles& used);

// Selects, checks, packs, pushes and signs the files of one tree, without autotune results if
// `request.grouped` is set. With `request.base_digest` the new bundle also contains the files of
// that older bundle; if the tree adds nothing, the digest stays that of the older bundle. A harvest
// (`request.generation`) replaces no file of the older bundle, and leaves out autotune results of
// another tuning than those of the older bundle. Repeating the call gives the same digest. After an
// error, no part of the new bundle can be read from the store. Exception: if signing failed, the
// unsigned bundle can. Errors: ABORTED: the tree changed during the call and must settle again.
// NOT_FOUND: the tree has no file to publish. INVALID_ARGUMENT: the bundle exceeds a limit.
// FAILED_PRECONDITION: the key or the bundle `request.base_digest` cannot be used. Other errors are
// those of the store.
absl::StatusOr<Published> PublishTree(const PublishJob& job, std::stop_token stop);

}  // namespace cachewarm::agent
