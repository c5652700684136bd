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

// Prepares the arguments of bundle::Publish() from a selection.
namespace cachewarm::capture {

// Key and node of a new bundle: references that must be valid during the call of FactsOf().
struct BundleOrigin {
  const std::string& key;
  const api::KeyFactors& factors;
  const fingerprint::NodeFacts& node;
};

// Returns the facts of a bundle with the files of `selection`.
bundle::Facts FactsOf(const BundleOrigin& maker, const Selection& selection);

// Returns the facts of a bundle that unites an existing bundle with the facts `kept` and a newer
// capture for the same key. Node and engines are those of `kept`, so that a capture that adds
// nothing gives the same bundle. The compile time is the maximum, not the sum, because ranks
// compile at the same time.
bundle::Facts UniteFacts(bundle::Facts kept, const bundle::Facts& newer);

// Options for reading the files while they are packed.
struct ReadOptions {
  const fs::Dir& tree;  // must outlive the files
  // Called before every open, concurrently, on the threads that pack; may be empty.
  std::function<void(const std::string&)> on_opening;
  bool detect_writers = true;  // as StableOpen::detect_writers
};

// Returns the selected files as input of the packer. Reading a file that has changed since its
// selection is ABORTED.
std::vector<bundle::PackFile> PackFilesOf(const Selection& selection, const ReadOptions& reading);

}  // namespace cachewarm::capture
