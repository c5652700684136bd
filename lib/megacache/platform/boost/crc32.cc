// SPDX-License-Identifier: Apache-2.0
#include "lib/megacache/platform/boost/crc32.h"

#include <boost/crc.hpp>

namespace cachewarm::megacache {

uint32_t Crc32(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

}  // namespace cachewarm::megacache
