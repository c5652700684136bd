// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/fs/dir.h"
#include "lib/megacache/artifact.h"

namespace cachewarm::cli {

// The files of an Inductor directory that the graphs of an artifact need but the artifact cannot
// hold: compiled kernels with their sources, generated Python code, results of compiler probes, and
// Triton's files.
struct ObjectFiles {
  struct File {
    std::string path;  // relative to the directory
    int64_t bytes = 0;
  };
  std::vector<File> files;           // sorted by path
  size_t kernels = 0;                // C++ and CUDA kernels of the artifact
  size_t compiled = 0;               // those of them whose shared object is among the files
  std::vector<std::string> damaged;  // "path: reason" of files that would crash a reader
};

// Opens the Inductor directory `path`, or "inductor" in it if `path` is a whole cache directory.
absl::StatusOr<fs::Dir> OpenInductorDirectory(const std::string& path);

// Finds the files for `entries`; without a directory only counts the kernels. Leaves out files of
// graphs that are not in the artifact, and all files of a kernel if one of them is damaged.
absl::StatusOr<ObjectFiles> FindObjects(const std::optional<fs::Dir>& directory,
                                        std::span<const megacache::Entry> entries);

}  // namespace cachewarm::cli
