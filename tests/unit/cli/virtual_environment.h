// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "tests/fakes/temp_dir.h"

namespace cachewarm::cli {

// Makes a virtual environment `name` below `temp` that has this version of torch, and returns the
// path of its interpreter. The interpreter is a shell: only its path and its packages matter.
inline std::string MakeVirtualEnvironment(const TempDir& temp, const std::string& name,
                                          const std::string& torch) {
  temp.Write(name + "/pyvenv.cfg", "home = /usr/bin\n");
  std::filesystem::create_directories(temp / (name + "/bin"));
  std::filesystem::create_directories(
      temp / (name + "/lib/python3.11/site-packages/torch-" + torch + ".dist-info"));
  std::filesystem::create_symlink("/bin/sh", temp / (name + "/bin/python3"));
  return temp / (name + "/bin/python3");
}

}  // namespace cachewarm::cli
