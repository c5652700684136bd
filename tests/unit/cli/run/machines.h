// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "cli/run/source.h"
#include "gtest/gtest.h"
#include "lib/bundle/store/open.h"
#include "lib/fingerprint/key.h"
#include "tests/fakes/temp_dir.h"

// Machines and stores for tests of "run", "load" and "save".
namespace cachewarm::cli {

inline Machine MachineOf(const std::string& cpu_class, EngineVersions engines = {}) {
  Machine machine{.engines = std::move(engines)};
  machine.facts.cpu_class = cpu_class;
  machine.factors = {.gpu_type = machine.facts.gpu_type,
                     .cpu_class = cpu_class,
                     .image = ImageOf(machine.engines),
                     .container = "main"};
  const auto key = fingerprint::KeyOf(machine.factors);
  EXPECT_TRUE(key.ok()) << key.status();
  machine.key = key.value_or("");
  return machine;
}

// The repository "llama" of an image layout in `directory`.
inline BundleSource SourceIn(const std::string& directory, Machine machine) {
  BundleSource source{.machine = std::move(machine)};
  source.store.reference = *Reference::Parse("layout://" + directory + "/llama");
  source.store.store = *bundle::OpenStore({.url = source.store.reference.store_url}, SystemClock());
  return source;
}

}  // namespace cachewarm::cli
