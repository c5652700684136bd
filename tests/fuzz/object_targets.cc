// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "lib/api/cache_warmup.h"
#include "lib/api/kubernetes.h"
#include "lib/api/node_cache.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/watch_event.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {
namespace {

constexpr size_t kObjectBytesMax = 1U << 20U;

}  // namespace

void CacheWarmup(std::string_view bytes) {
  const auto json = codec::ParseJson(bytes, {.bytes_max = kObjectBytesMax});
  if (!json.ok()) {
    return;
  }
  const auto decoded = api::DecodeCacheWarmup(*json);
  if (!decoded.ok()) {
    return;
  }
  codec::Json again = {{"metadata", {{"name", "x"}}},
                       {"status", api::EncodeStatus(decoded->status)}};
  again["spec"] = json->value("spec", codec::Json::object());
  const auto twice = api::DecodeCacheWarmup(again);
  Require(twice.ok() && twice->status == decoded->status, "a written status reads the same");
}

void NodeCache(std::string_view bytes) {
  const auto json = codec::ParseJson(bytes, {.bytes_max = kObjectBytesMax});
  if (!json.ok()) {
    return;
  }
  const auto decoded = api::DecodeNodeCache(*json);
  if (!decoded.ok()) {
    return;
  }
  const codec::Json again = {{"metadata", {{"name", "node-a"}}},
                             {"spec", api::EncodeSpec(decoded->spec)},
                             {"status", api::EncodeStatus(decoded->status)}};
  const auto twice = api::DecodeNodeCache(again);
  Require(twice.ok() && api::EncodeSpec(twice->spec) == again["spec"] &&
              twice->status == decoded->status,
          "a written NodeCache reads the same");
}

void Pod(std::string_view bytes) {
  auto json = codec::ParseJson(bytes, {.bytes_max = kObjectBytesMax});
  if (!json.ok()) {
    return;
  }
  const auto object = std::make_shared<const codec::Json>(*std::move(json));
  static_cast<void>(api::DecodePod(object));
  static_cast<void>(api::DecodeNode(*object));
  static_cast<void>(api::DecodeMeta(*object));
}

// Input: the size of the pieces (first byte), then the stream.
void WatchStream(std::string_view bytes) {
  if (bytes.empty()) {
    return;
  }
  const auto stream = bytes.substr(1);
  const auto events_of = [stream](size_t piece) {
    std::string seen;
    kube::WatchDecoder decoder(
        [&seen](const kube::WatchEvent& event) {
          seen += std::to_string(static_cast<int>(event.type)) + codec::DumpJson(*event.object);
          return absl::OkStatus();
        },
        4096);
    for (size_t at = 0; at < stream.size() && decoder.Feed(stream.substr(at, piece)).ok();) {
      at += piece;
    }
    static_cast<void>(decoder.Finish());
    return seen;
  };
  const size_t piece = 1U + static_cast<unsigned char>(bytes.front());
  Require(events_of(piece) == events_of(stream.size() + 1), "the pieces of a stream do not matter");
}

}  // namespace cachewarm::fuzz
