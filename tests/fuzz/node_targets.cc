// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lib/caches/cache_table.h"
#include "lib/caches/file_check.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"
#include "lib/fingerprint/cpu_class.h"
#include "lib/fingerprint/node_facts.h"
#include "lib/resp/reply.h"
#include "lib/resp/request_reader.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {

void NodeFacts(std::string_view bytes) {
  static_cast<void>(fingerprint::ParseDeclaredFacts(bytes));
  // The facts of a probe, which a child process prints, and which bundles hold.
  if (const auto facts = fingerprint::ParseNodeFacts(bytes); facts.ok()) {
    const codec::Json written = fingerprint::NodeFactsToJson(*facts);
    const auto again = fingerprint::ParseNodeFacts(codec::DumpJson(written));
    Require(again.ok() && fingerprint::NodeFactsToJson(*again) == written,
            "written facts read the same");
  }
}

void CpuInfo(std::string_view bytes) {
  const auto facts = fingerprint::ParseProcCpu(bytes);
  if (!facts.ok()) {
    return;
  }
  const auto once = fingerprint::NormaliseCpu(*facts);
  if (once.ok()) {
    const auto twice = fingerprint::NormaliseCpu(*once);
    Require(twice.ok() && *twice == *once, "what is normal stays as it is");
  }
}

void Yaml(std::string_view bytes) {
  static_cast<void>(codec::ParseYamlStream(bytes, {.nodes_max = 10'000}));
  if (const auto json = codec::ParseJson(bytes, {.bytes_max = 1U << 20U}); json.ok()) {
    const auto text = codec::CanonicalJson(*json);
    if (text.ok()) {
      const auto again = codec::ParseJson(*text);
      Require(again.ok() && *codec::CanonicalJson(*again) == *text, "canonical text is canonical");
    }
  }
}

// Input: a path, a newline, and the content of the file.
void CachedFile(std::string_view bytes) {
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::string_view path = bytes.substr(0, end);
  const std::string_view content = bytes.substr(std::min(end + 1, bytes.size()));
  const auto& table = caches::CacheTable::AllPresets();
  const caches::Placement placement = table.Classify(path);
  uint64_t read = 0;
  const auto look = [content, &read](uint64_t offset, size_t size) -> absl::StatusOr<std::string> {
    read += size;
    return offset >= content.size()
               ? std::string()
               : std::string(content.substr(static_cast<size_t>(offset), size));
  };
  static_cast<void>(caches::CheckWhole(placement, path, content.size(), look));
  Require(read <= 64U << 10U, "a check reads at most 64 KiB");
  static_cast<void>(caches::CubinArchitecture(content.substr(0, 64)));
  static_cast<void>(caches::HsacoArchitecture(content.substr(0, 64)));
  static_cast<void>(caches::PtxArchitecture(content));
  const auto time = caches::FindCompileTime(content);
  Require(time.graph_ns >= 0 && time.autograd_ns >= 0, "a compile time is not negative");
}

// Reads `input` in parts of `step` bytes and returns the requests, written again.
std::string ReadRequests(std::string_view input, size_t step) {
  size_t reserved = 0;
  resp::RequestReader reader([&reserved](size_t bytes) {
    reserved += bytes;
    return bytes <= (64U << 10U);
  });
  std::string written;
  while (!input.empty()) {
    const auto read = reader.Read(input.substr(0, step));
    if (!read.ok()) {
      return written + "error";
    }
    Require(*read > 0, "a reader makes progress");
    input.remove_prefix(*read);
    if (reader.IsComplete()) {
      const std::vector<resp::Argument> request = reader.Take();
      Require(!request.empty() && request.size() <= resp::RequestLimits().arguments_max,
              "a request has arguments within the limit");
      written += resp::ArrayHeader(request.size());
      for (const resp::Argument& argument : request) {
        Require(!argument.dropped || argument.bytes.empty(), "a dropped argument has no bytes");
        written += argument.dropped ? "dropped" : resp::BulkString(argument.bytes);
      }
    }
  }
  return written;
}

void RedisRequests(std::string_view bytes) {
  const std::string whole = ReadRequests(bytes, std::max<size_t>(bytes.size(), 1));
  Require(ReadRequests(bytes, 1) == whole, "the parts in which bytes arrive change nothing");
  if (whole.find("dropped") == std::string::npos && !whole.ends_with("error")) {
    Require(ReadRequests(whole, 7) == whole, "what is written is read again");
  }
}

}  // namespace cachewarm::fuzz
