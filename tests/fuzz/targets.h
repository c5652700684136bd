// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

// Everything that reads bytes of strangers. A target takes any bytes and must come back: no crash,
// no sanitizer report, no bound exceeded. What it accepts it writes out and reads again: the second
// reading must say the same. A broken promise aborts.
namespace cachewarm::fuzz {

struct Target {
  std::string_view name;  // of its folder in corpus/
  void (*run)(std::string_view bytes);
};

const std::vector<Target>& AllTargets();

// Of a published bundle and a registry (bundle_targets.cc).
void Manifest(std::string_view bytes);
void Config(std::string_view bytes);
void LayoutIndex(std::string_view bytes);
void TarMembers(std::string_view bytes);
void RegistryAnswer(std::string_view bytes);
void Referrers(std::string_view bytes);
void Signature(std::string_view bytes);
void Location(std::string_view bytes);

// Of whole ways through both (store_targets.cc).
void UnpackedMembers(std::string_view bytes);
void EntryLines(std::string_view bytes);
void FrameIndex(std::string_view bytes);
void RegistryError(std::string_view bytes);
void AuthFile(std::string_view bytes);

// Of the API server (object_targets.cc).
void CacheWarmup(std::string_view bytes);
void NodeCache(std::string_view bytes);
void Pod(std::string_view bytes);
void WatchStream(std::string_view bytes);

// Of whoever reaches the webhook (webhook_targets.cc).
void AdmissionReview(std::string_view bytes);

// Of a node, its administrator and its pods (node_targets.cc).
void NodeFacts(std::string_view bytes);
void CpuInfo(std::string_view bytes);
void Yaml(std::string_view bytes);
void CachedFile(std::string_view bytes);

// Aborts with the promise that was broken.
void Promise(bool kept, std::string_view promise);

}  // namespace cachewarm::fuzz
