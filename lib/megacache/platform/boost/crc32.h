// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace cachewarm::megacache {

// Returns the CRC-32 of zlib (ISO 3309) of `bytes`.
uint32_t Crc32(std::string_view bytes);

}  // namespace cachewarm::megacache
