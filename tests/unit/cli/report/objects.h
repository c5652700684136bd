// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/api/cache_warmup.h"
#include "lib/api/node_cache.h"
#include "lib/base/digest.h"
#include "lib/codec/json_value.h"

// Objects as an API server sends them.
namespace cachewarm::cli::report {

inline codec::Json WarmupObject(const std::string& ns, const std::string& name,
                                const api::WarmupStatus& status) {
  api::WarmupSpec spec;
  spec.selector = {{"app", "llama"}};
  return {{"apiVersion", "cachewarm.io/v1alpha1"},
          {"kind", "CacheWarmup"},
          {"metadata", {{"namespace", ns}, {"name", name}, {"uid", ns + "-" + name}}},
          {"spec", api::EncodeSpec(spec)},
          {"status", api::EncodeStatus(status)}};
}

inline codec::Json NodeObject(const std::string& name, const api::NodeCacheSpec& spec,
                              const api::NodeCacheStatus& status) {
  return {{"apiVersion", "cachewarm.io/v1alpha1"},
          {"kind", "NodeCache"},
          {"metadata", {{"name", name}, {"uid", name}}},
          {"spec", api::EncodeSpec(spec)},
          {"status", api::EncodeStatus(status)}};
}

// The digest of a bundle is that of `content`.
inline api::BundleStatus BundleOf(const std::string& gpu_type, const std::string& content,
                                  int64_t bytes) {
  return {.key = DigestOf(content).hex(),
          .gpu_type = gpu_type,
          .cpu_class = "x86-64-v3/intel-6-85/0123abcd",
          .image = "llama:1",
          .digest = DigestOf(content),
          .bytes = bytes};
}

}  // namespace cachewarm::cli::report
