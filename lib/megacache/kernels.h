// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/megacache/artifact.h"

// Facts in the pickled entries of an artifact that decide whether a start that loads it is a full
// hit. The pickles are scanned as bytes and never executed. Pure.
namespace cachewarm::megacache {

// The sources of the C++ and CUDA kernels of an artifact. An entry holds the generated Python code
// of a graph, in which every kernel is one literal r'''...''' (torch/_inductor/async_compile.py). A
// start that hits the entry compiles a kernel unless its shared object is in the directory.
class KernelSources {
 public:
  // The sources point into the contents of `entries`, which must outlive this object.
  explicit KernelSources(std::span<const Entry> entries);

  // Number of different kernels.
  size_t size() const { return sources_.size(); }
  // Returns the index, below size(), of the kernel with which `text`, a source file, begins.
  // Inductor appends bindings for Python to a kernel before it compiles it.
  std::optional<size_t> Find(std::string_view text) const;

 private:
  std::vector<std::string_view> sources_;  // sorted
};

// Returns the setting cpp_cache_precompile_headers of the process that saved the entries: torch
// lists the settings that are part of a key inside the entry. nullopt if no entry has it.
std::optional<bool> PrecompilesHeaders(std::span<const Entry> entries);

}  // namespace cachewarm::megacache
