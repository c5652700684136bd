// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/caches/placement.h"

namespace cachewarm::caches {

// Bytes [offset, offset + size) of the file, shorter only at its end.
using ReadAt = std::function<absl::StatusOr<std::string>(uint64_t offset, size_t size)>;

// OK when the file may be shown to a pod. DATA_LOSS, saying why, for what would crash every start
// for ever: an empty shared object, output module or index entry, and an ELF file that ends
// before its section table or a segment does. Reads at most 64 KiB; errors of `read` come through.
absl::Status CheckWhole(const Placement& placement, std::string_view path, uint64_t size,
                        const ReadAt& read);

// "sm_90", "sm_100a" from the first 64 bytes of a CUDA ELF image; nullopt for anything else.
std::optional<std::string> CubinArchitecture(std::string_view head);

// Compile nanoseconds that an Inductor, AOTAutograd or vLLM entry stores about itself, by a scan
// for the pickled attributes; the pickle is never executed. Gross work: sums over parallel
// compiles, without tracing.
struct StoredCompileTime {
  int64_t graph_ns = 0;     // _time_taken_ns
  int64_t autograd_ns = 0;  // forward_time_taken_ns + backward_time_taken_ns, holds graph_ns

  StoredCompileTime& operator+=(const StoredCompileTime& other);
  StoredCompileTime& operator-=(const StoredCompileTime& other);
  // The AOTAutograd sum where there is one, else the graphs'.
  double Seconds() const;
};
StoredCompileTime FindCompileTime(std::string_view bytes);
// No text that says one time is longer. Whoever scans a file in pieces has each begin so far before
// the end of the last one, and takes off what it finds in that part alone.
inline constexpr size_t kCompileTimeBytesMax = 35;

// True for files whose bytes FindCompileTime should be given.
bool StoresCompileTime(const Placement& placement);

}  // namespace cachewarm::caches
