// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "cli/arguments.h"
#include "cli/collect.h"
#include "cli/run/engines.h"
#include "lib/bundle/format.h"
#include "lib/fingerprint/key.h"
#include "lib/fingerprint/node_facts.h"

namespace cachewarm::cli {

// Options that set the inputs of a key: --image, --container, --devices, --node-facts.
std::span<const Option> MachineOptionList();

// Facts of this machine, and the key of caches that are compiled on it.
struct Machine {
  fingerprint::NodeFacts facts;
  fingerprint::KeyFactors factors;
  std::string key;
  EngineVersions engines;
};
// Returns the facts and the key of this machine. Without --image, the image in the key is
// ImageOf(engines), so that a different version of an engine gives a different key. UNAVAILABLE if
// the GPU driver does not answer.
absl::StatusOr<Machine> FindMachine(const Arguments& arguments, EngineVersions engines = {});

// Returns the tag of the machine's bundle: "k-<key>".
std::string TagOf(const Machine& machine);

// Returns the facts of a bundle that contains `collection` and was made on `machine`.
bundle::Facts FactsOf(const Machine& machine, const Collection& collection);

}  // namespace cachewarm::cli
