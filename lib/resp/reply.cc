// SPDX-License-Identifier: Apache-2.0
#include "lib/resp/reply.h"

#include <algorithm>

#include "fmt/format.h"

namespace cachewarm::resp {

std::string SimpleString(std::string_view text) {
  return fmt::format("+{}\r\n", text);
}

std::string Error(std::string_view message) {
  std::string line(message);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c >= '\0' && c < ' '; }, ' ');
  return fmt::format("-{}\r\n", line);
}

std::string Integer(int64_t value) {
  return fmt::format(":{}\r\n", value);
}

std::string BulkString(std::string_view bytes) {
  return BulkHeader(bytes.size()).append(bytes).append(BulkEnd());
}

std::string BulkHeader(size_t bytes) {
  return fmt::format("${}\r\n", bytes);
}

std::string_view BulkEnd() {
  return "\r\n";
}

std::string ArrayHeader(size_t size) {
  return fmt::format("*{}\r\n", size);
}

std::string MapHeader(size_t size, Version version) {
  return version == Version::kResp3 ? fmt::format("%{}\r\n", size) : ArrayHeader(2 * size);
}

std::string Null(Version version) {
  return version == Version::kResp3 ? "_\r\n" : "$-1\r\n";
}

}  // namespace cachewarm::resp
