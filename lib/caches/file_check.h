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

// A function that returns the bytes [offset, offset + size) of a file, fewer only at its end.
using ReadAt = std::function<absl::StatusOr<std::string>(uint64_t offset, size_t size)>;

// Checks that the file cannot crash an engine that reads it. Returns DATA_LOSS, with the reason,
// for two kinds of files:
//   an empty file of a type that is never empty: index entry, shared object or Python module
//   a truncated ELF file: shorter than its header, its tables or its segments declare
// Reads the ELF header and at most 64 KiB of program headers. Other errors are those of `read`.
absl::Status CheckWhole(const Placement& placement, std::string_view path, uint64_t size,
                        const ReadAt& read);

// Reads the architecture ("sm_90", "sm_100a") from the first 64 bytes of a CUDA ELF image. Returns
// nullopt for other files.
std::optional<std::string> CubinArchitecture(std::string_view head);
// Reads the architecture ("gfx942") from the first 64 bytes of an AMD code object (hsaco), an ELF
// file. Returns nullopt for other files and for architectures that are not in the table.
std::optional<std::string> HsacoArchitecture(std::string_view head);
// Reads the architecture ("compute_90a") from the directive .target in the first kPtxHeadBytes of a
// PTX file. Returns nullopt if it is missing or malformed.
std::optional<std::string> PtxArchitecture(std::string_view head);
inline constexpr size_t kPtxHeadBytes = 2048;

// Compile times that an Inductor, AOTAutograd or vLLM entry stores about itself. Parallel compiles
// are added up, so the sum may exceed the elapsed time. Tracing is not included.
struct StoredCompileTime {
  int64_t graph_ns = 0;     // _time_taken_ns
  int64_t autograd_ns = 0;  // forward_time_taken_ns + backward_time_taken_ns; includes graph_ns

  StoredCompileTime& operator+=(const StoredCompileTime& other);
  StoredCompileTime& operator-=(const StoredCompileTime& other);
  // Returns the time stored by AOTAutograd, which includes the graphs; if there is none, the time
  // of the graphs.
  double Seconds() const;
};
// Finds the compile times in the pickled `bytes` and returns their sums, capped at INT64_MAX. Only
// scans the bytes; never executes the pickle.
StoredCompileTime FindCompileTime(std::string_view bytes);
// Maximum length of one encoded time. To scan a file in chunks, overlap them by this many bytes and
// subtract the matches inside the overlap.
inline constexpr size_t kCompileTimeBytesMax = 35;

// True for files in which FindCompileTime() may find a time.
bool StoresCompileTime(const Placement& placement);

}  // namespace cachewarm::caches
