// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

// Decides which GPU runs which GPU code. Pure.
namespace cachewarm::fingerprint {

// True if a GPU of architecture `gpu` ("sm_90", "gfx942") runs code for `code`:
//   sm_NN      machine code: the same major version and the same or a greater minor version. GPUs
//              of Jetson and DRIVE (sm_53, sm_62, sm_72, sm_87, sm_101) run only code for the same
//              version, and their code runs on no other GPU.
//   compute_NN PTX, which the driver compiles: the same or a greater version.
//   sm_NNa, compute_NNa  architecture-specific: the same version only.
//   sm_NNf, compute_NNf  family-specific: the same major version and the same or a greater minor
//              version.
//   gfxNNN     AMD: the same architecture only.
// Sources: CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility" and
// "Family-Specific Features"; LLVM, "User Guide for AMDGPU Backend". False for malformed text.
bool RunsOn(std::string_view code, std::string_view gpu);

// Returns the architectures in a GPU type: "nvidia/a10+l4/sm_86+sm_89" has "sm_86" and "sm_89";
// "cpu" has none.
std::vector<std::string> ArchitecturesOf(std::string_view gpu_type);

// True if a node of the GPU type can use at least one of the `code` architectures, or if there is
// nothing to compare: no GPU code is known, or the type has no GPU.
bool HasCodeFor(const std::vector<std::string>& code, std::string_view gpu_type);

}  // namespace cachewarm::fingerprint
