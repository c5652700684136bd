// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Writes replies of the Redis serialization protocol (see request_reader.h). Pure.
namespace cachewarm::resp {

enum class Version { kResp2, kResp3 };

std::string SimpleString(std::string_view text);
// `message` begins with a word in upper case ("ERR"). Control characters are replaced by spaces,
// because a line end would end the reply.
std::string Error(std::string_view message);
std::string Integer(int64_t value);
std::string BulkString(std::string_view bytes);
// Begins a bulk string: `bytes` bytes and then BulkEnd() must follow.
std::string BulkHeader(size_t bytes);
std::string_view BulkEnd();
// Begins an array: `size` replies must follow.
std::string ArrayHeader(size_t size);
// Begins a map: `size` pairs of key and value must follow. RESP2 has no maps: there it begins an
// array of the same keys and values.
std::string MapHeader(size_t size, Version version);
// Returns the reply for an absent value.
std::string Null(Version version);

}  // namespace cachewarm::resp
