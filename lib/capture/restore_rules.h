// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/base/digest.h"
#include "lib/bundle/format.h"
#include "lib/caches/cache_table.h"
#include "lib/capture/tree_listing.h"
#include "lib/fs/dir.h"

// Selects the files of a bundle that a tree must not get. Above all it keeps autotune results of
// different generations apart. A process that finds only a part of the
// results tunes the others, and may wait in a collective operation for processes that found them
// (docs/design/0028-autotune-results-of-one-generation.md).
namespace cachewarm::capture {

// The digests of autotune results in a tree, by path. An empty digest equals no other.
using AutotuneResults = std::map<std::string, Digest, std::less<>>;

// Returns the results among `entries` that `tree` has. Files that cannot be read, or exceed 64 MiB,
// get an empty digest.
AutotuneResults ReadAutotuneResults(const fs::Dir& tree, const std::vector<bundle::Entry>& entries,
                                    const caches::CacheTable& table);

// Returns the results among `entries`, except those that `excluded` marks by index.
AutotuneResults AutotuneResultsOf(const std::vector<bundle::Entry>& entries,
                                  const caches::CacheTable& table,
                                  const std::vector<bool>& excluded);

// Returns true, by index in `entries`, for every file of a set (Placement::autotune_set) of which
// `present` has a file with other bytes: the set is of another generation and must not be added to
// the tree of `present`. Returns an empty vector if there is no such file. Pure.
std::vector<bool> FindRivals(const std::vector<bundle::Entry>& entries,
                             const caches::CacheTable& table, const AutotuneResults& present);

// Returns, by index in `entries`, the files of a bundle that must not be restored into a tree with
// the results `present`: those of FindRivals(), and locks, which another program may have packed:
// no process holds them, and an engine would wait for them. Empty if there is none. Pure.
std::vector<bool> FindUnwanted(const std::vector<bundle::Entry>& entries,
                               const caches::CacheTable& table, const AutotuneResults& present);

// Returns UnpackOptions::wanted for a result of FindUnwanted(); unset if that is empty. `entries`
// must outlive it.
std::function<bool(const bundle::Entry&)> WantedAmong(const std::vector<bundle::Entry>& entries,
                                                      std::vector<bool> unwanted);

// Returns the sets of `files`, sorted by path, that must stay out of the union with the bundle
// `stored`: of another generation than the set of the bundle, and without one of its paths. All
// other sets may replace or extend those of the bundle. Reads files of `tree`.
std::set<std::string, std::less<>> SetsToLeaveOut(const bundle::Config& stored,
                                                  const std::vector<TreeFile>& files,
                                                  const fs::Dir& tree);

}  // namespace cachewarm::capture
