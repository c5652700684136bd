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
#include "lib/capture/tree_listing.h"
#include "lib/fingerprint/node_facts.h"

namespace cachewarm::agent {

// One settled tree on its way to the store. What it refers to must outlive the call.
struct PublishJob {
  bundle::Store& store;
  const fs::Dir& tree;
  const caches::CacheTable& table;
  const fingerprint::NodeFacts& node;
  api::CaptureRequest request;
  std::string ns;    // of the warmup
  std::string name;  // of the warmup
  // Bundles of the warmup that fit this node: one of them is built upon when the key has none yet.
  std::vector<Digest> older;
  UsedFiles used;
  int threads = bundle::DefaultThreads();  // that read and compress
  std::string private_key_file;            // signs the bundle; empty: it is not signed
  // Before every open of a file in the tree; by several threads at the same time.
  std::function<void(const std::string&)> on_opening;
};

struct Published {
  bundle::Publication publication;
  bool native = false;                 // the bundle as a whole
  double stored_compile_seconds = 0;   // what the entries say about themselves
  std::vector<std::string> truncated;  // left out
};

// FAILED_PRECONDITION unless the request's key is that of its factors and its GPU type and CPU
// class are those of this node: a bundle that says otherwise could be shown to the wrong CPU.
absl::Status CheckRequest(const api::CaptureRequest& request, const fingerprint::NodeFacts& node);

// Of `files` those that the builder used.
std::vector<capture::TreeFile> FilterUsed(std::vector<capture::TreeFile> files,
                                          const caches::CacheTable& table, const UsedFiles& used);

// Chooses, checks, packs, pushes and signs. With `request.base_digest` the bundle is the union with
// that one, and the same digest where nothing is new. ABORTED: the tree changed meanwhile, let it
// settle again. NOT_FOUND: nothing in it may travel. INVALID_ARGUMENT: the bundle would be over a
// limit. FAILED_PRECONDITION: the key, or the bundle to keep, cannot be used. Else the store's
// error. Nothing is readable in the store unless the call succeeds; done again it gives the same
// digest.
absl::StatusOr<Published> PublishTree(const PublishJob& job, std::stop_token stop);

}  // namespace cachewarm::agent
