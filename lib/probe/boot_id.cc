// SPDX-License-Identifier: Apache-2.0
#include "lib/probe/boot_id.h"

#include <fstream>

namespace cachewarm::probe {

std::string BootId(const std::string& proc_root) {
  std::ifstream file(proc_root + "/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace cachewarm::probe
