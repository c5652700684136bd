// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace cachewarm::probe {

// Returns a text that changes when the node's GPU driver may have changed: versions of the loaded
// kernel modules (/proc/driver/nvidia/version, /sys/module/{nvidia,amdgpu}/version), the GPUs that
// the NVIDIA module lists, the names of GPU device files (/dev/nvidia*, /dev/kfd, /dev/dri/*), and
// the identity of each file in `libraries`. Reads a few small files and opens no device. `root` is
// the file system's root: "" on a machine, a directory in tests.
std::string DriverState(const std::string& root, const std::vector<std::string>& libraries);

// Returns the number of GPUs that the NVIDIA kernel module lists in /proc/driver/nvidia/gpus. Every
// container sees them, also one without the driver's libraries and device files.
int KernelNvidiaGpus(const std::string& proc_root);

}  // namespace cachewarm::probe
