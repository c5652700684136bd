// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/api/node_cache.h"
#include "lib/bundle/packer.h"
#include "lib/capture/selection.h"
#include "lib/fingerprint/node_facts.h"
#include "lib/fs/dir.h"

// Prepares the arguments of bundle::Publish() from the selected files of a tree.
namespace cachewarm::capture {

// Key and node of a new bundle. The references must stay valid during the call of FactsOf().
struct BundleOrigin {
  const std::string& key;
  const api::KeyFactors& factors;
  const fingerprint::NodeFacts& node;
};

// Returns the facts (metadata) of a bundle that contains the files of `selection`.
bundle::Facts FactsOf(const BundleOrigin& maker, const Selection& selection);

// Returns the facts of the union of an existing bundle (`kept`) and a newer capture for the same
// key (`newer`). Takes from `kept` the node, and the version of each engine that `kept` names, so
// that a capture that adds nothing gives the same bundle. Takes the maximum of the compile times,
// not the sum, because the ranks (pods of one distributed server) compile at the same time.
bundle::Facts UniteFacts(bundle::Facts kept, const bundle::Facts& newer);

// Options for reading the files while they are packed.
struct ReadOptions {
  const fs::Dir& tree;  // must outlive the returned files
  // Called before every open, concurrently, on the threads that pack; may be empty.
  std::function<void(const std::string&)> on_opening;
  bool detect_writers = true;  // fail if a process has the file open for writing
};

// Returns the selected files as input of the packer. Reading a file that has changed since its
// selection fails with ABORTED.
std::vector<bundle::PackFile> PackFilesOf(const Selection& selection, const ReadOptions& reading);

}  // namespace cachewarm::capture
