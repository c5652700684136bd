// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "lib/bundle/store/store.h"
#include "tests/contract/store/registry_process.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::bundle {

constexpr char kRepository[] = "team/llama";
constexpr int64_t kSmallChunk = 64 << 10;

// A store and the objects that it uses.
struct StoreUnderTest {
  std::unique_ptr<TempDir> directory;
  std::unique_ptr<RegistryProcess> registry;
  std::unique_ptr<Store> store;
};

struct StoreKind {
  std::string name;
  bool needs_registry = false;
  std::function<StoreUnderTest()> make;
};

std::ostream& operator<<(std::ostream& out, const StoreKind& kind);

// Starts a registry without a password, and opens it as the programs do.
StoreUnderTest MakeRegistry();

// Returns every kind of store: memory, image layout and registry, also with each decorator.
std::vector<StoreKind> AllKinds();

}  // namespace cachewarm::bundle
