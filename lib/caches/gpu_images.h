// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "lib/caches/file_check.h"

namespace cachewarm::caches {

// Returns the architectures ("sm_90a", "compute_90", "gfx942") of the GPU code in a file of `size`
// bytes:
//   a CUDA ELF image (cubin). Its suffix is that of the command line which ptxas 13 and NVRTC 13
//   note in .note.nv.tkinfo, because the header does not have it
//   an AMD code object (hsaco)
//   a CUDA fat binary, also compressed
//   a 64-bit host ELF file with fat binaries in .nv_fatbin or __nv_relfatbin, as nvcc builds it
// Returns an empty set for other files, and stops at the first malformed part. Reads headers and
// notes only, at most 1 MiB. Errors are those of `read`.
absl::StatusOr<std::set<std::string>> FindGpuCode(uint64_t size, const ReadAt& read);

}  // namespace cachewarm::caches
