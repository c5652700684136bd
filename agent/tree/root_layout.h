// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "agent/sync/warmup_mount.h"
#include "lib/base/digest.h"

// Layout of the root directory. Pure.
//
//   <ns>/<name>/<uid>/<run-as> -> ../../../.gen/<id>   link that pods mount
//   .gen/<id>/                                         complete tree
//   .staging/<id>/                                     unfinished tree
//   .trash/<name>                                      tree that waits for its removal
//   .state/generations/<id>.json, <id>.entries         bundles and files of a tree
//   .state/generations/<id>.scrub.json                 scrub progress of a tree
//   .state/generations/<id>.durable                    exists if the tree survives a power cut
//   .state/links/<uid>.<run-as>.json                   history of active trees
//   .state/captures/<id>.json                          results of captures
//   .state/quarantine/<uid>.<sha256>.json              bundles that must not be fetched
//   .state/damaged/<id>.json                           trees that must not be activated
//   .state/lock                                        lock of the running agent
namespace cachewarm::agent {

inline constexpr std::string_view kGenerations = ".gen";
inline constexpr std::string_view kStaging = ".staging";
inline constexpr std::string_view kTrash = ".trash";
inline constexpr std::string_view kState = ".state";
inline constexpr std::string_view kGenerationRecords = ".state/generations";
inline constexpr std::string_view kLinkRecords = ".state/links";
inline constexpr std::string_view kCaptureRecords = ".state/captures";
inline constexpr std::string_view kQuarantineRecords = ".state/quarantine";
inline constexpr std::string_view kDamagedRecords = ".state/damaged";

// Mode of every directory in a tree. Without the sticky bit: with it, fs.protected_regular would
// deny O_CREAT for files of other users.
inline constexpr mode_t kTreeMode = 0777;

std::string MountParent(const Mount& mount);  // "<ns>/<name>/<uid>"
std::string MountPath(const Mount& mount);
// Returns the target of a mount's link: relative, so that the root may be mounted at any path.
std::string LinkTarget(std::string_view generation);
// Returns the generation of a link target; empty for any other text.
std::string TargetGeneration(std::string_view target);

std::string GenerationPath(std::string_view id);
std::string StagingPath(std::string_view id);
std::string GenerationRecordPath(std::string_view id);
std::string EntriesRecordPath(std::string_view id);
std::string ScrubRecordPath(std::string_view id);
std::string DurableMarkPath(std::string_view id);
std::string LinkRecordPath(const Mount& mount);
// Returns warmup uid and run-as of a LinkRecordPath(); two empty texts for any other path.
std::pair<std::string, std::string> OwnerOfLinkRecord(std::string_view path);
// Returns the path of a capture record. `id` is hashed, because it may contain any byte.
std::string CaptureRecordPath(std::string_view id);

std::string QuarantinedBundlePath(std::string_view warmup_uid, const Digest& digest);
std::string DamagedTreePath(std::string_view id);
// Returns the generation of a DamagedTreePath(); an arbitrary text for any other path.
std::string DamagedTreeOf(std::string_view path);

}  // namespace cachewarm::agent
