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

// What bundle::Publish() is given of a selection.
namespace cachewarm::capture {

// What a bundle was made for, and where. Borrowed for the call.
struct BundleOrigin {
  const std::string& key;
  const api::KeyFactors& factors;
  const fingerprint::NodeFacts& node;
};

bundle::Facts FactsOf(const BundleOrigin& maker, const Selection& selection);

// Of the union of the bundle `kept` and a newer capture for the same key. Where and with what it
// was made stays what `kept` says: a capture that adds nothing changes no byte. Ranks compile at
// the same time, so the longest time counts and not the sum.
bundle::Facts UniteFacts(bundle::Facts kept, const bundle::Facts& newer);

// How the files are opened again when they are packed.
struct ReadOptions {
  const fs::Dir& tree;  // must outlive the files
  // Before every open, by the threads that pack; may be empty.
  std::function<void(const std::string&)> on_opening;
  bool detect_writers = true;  // StableOpen
};

// Each answers ABORTED when it is no longer what was selected.
std::vector<bundle::PackFile> PackFilesOf(const Selection& selection, const ReadOptions& reading);

}  // namespace cachewarm::capture
