// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "cli/arguments.h"
#include "cli/collect.h"
#include "lib/bundle/format.h"
#include "lib/fingerprint/key.h"
#include "lib/fingerprint/node_facts.h"

namespace cachewarm::cli {

// --image, --container, --devices, --node-facts: what a key is made of.
std::span<const Option> MachineOptionList();

// This machine and the key of what runs on it.
struct Machine {
  fingerprint::NodeFacts facts;
  fingerprint::KeyFactors factors;
  std::string key;
};
absl::StatusOr<Machine> FindMachine(const Arguments& arguments);

// The tag under which the bundle of a key is found: "k-<key>".
std::string TagOf(const Machine& machine);

// What a bundle of `collection` made on `machine` says about itself.
bundle::Facts FactsOf(const Machine& machine, const Collection& collection);

}  // namespace cachewarm::cli
