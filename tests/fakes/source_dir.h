// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace cachewarm::fakes {

// Returns the root of the source tree: CACHEWARM_SOURCE_DIR, which ctest sets, else the working
// directory. Not a compile definition, so that ccache serves the tests of another checkout.
inline std::string SourceDir() {
  const char* root = std::getenv("CACHEWARM_SOURCE_DIR");
  return root != nullptr ? root : std::filesystem::current_path().string();
}

}  // namespace cachewarm::fakes
