// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/megacache/artifact.h"

// The files that torch makes of the entries of an artifact, relative to TORCHINDUCTOR_CACHE_DIR.
// Sources: _write_to_local_cache() in torch/_inductor/codecache.py, torch/_functorch/_aot_autograd/
// autograd_cache.py and torch/_dynamo/package.py; AutotuneCacheArtifact in torch/_inductor/runtime/
// autotune_cache.py; code_state_path() in torch/_dynamo/pgo.py. Pure.
namespace cachewarm::megacache {

// Returns the path of the file that holds entry.content:
//   inductor      fxgraph/<characters 1 and 2 of the key>/<key>/<hash of the content>
//   aot_autograd  aotautograd/<key>/<hash of the content>
//   autotune      <key>, which is <directory>/<hash>.best_config
//   pgo           dynamo/code_state_<key>.pkl, with "_" for each of <>:"/\|?*
//   precompile    dynamo/<key>/entry
// INVALID_ARGUMENT for another type, and for a key that torch does not write.
absl::StatusOr<std::string> PathOf(const Entry& entry);

// The type and the key of an entry that PathOf() places at a path.
struct EntryName {
  std::string type;
  std::string key;
  bool named_by_content = false;  // the last part of the path is the hash of the content
};
// Returns nullopt if `path` is not the path of an entry. Also accepts aotautograd/<key>/entry, the
// name that old versions of torch used. The key of a pgo entry has "_" for the characters that
// PathOf() replaces; torch and PathOf() place it at the same path.
std::optional<EntryName> NameOf(std::string_view path);

// Returns the hash in the names of files: the first 51 characters of the base32 of SHA-256, in
// lower case (sha256_hash() in torch/_inductor/codecache.py).
std::string ContentName(std::string_view content);

}  // namespace cachewarm::megacache
