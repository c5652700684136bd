// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace cachewarm::probe {

// Returns the kernel's id of this boot, without a line feed: it changes with every start of the
// machine. Empty if it cannot be read. `proc_root` is "/proc" on a machine, a directory in tests.
std::string BootId(const std::string& proc_root);

}  // namespace cachewarm::probe
