// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "agent/sync/mount.h"

// Where everything is below the root directory. Pure.
//
//   <ns>/<name>/<uid>/<run-as> -> ../../../.gen/<id>   what pods mount
//   .gen/<id>/                                         a complete tree
//   .staging/<id>/                                     a tree being made
//   .state/generations/<id>.json, <id>.entries         what was put into a tree
//   .state/generations/<id>.scrub.json                 how far its scrub is
//   .state/links/<uid>.<run-as>.json                   when which tree became active
//   .state/captures/<id>.json                          captures that ended
//   .state/quarantine/<uid>.<sha256>.json              bundles that must not be fetched
//   .state/damaged/<id>.json                           trees that no link may lead to any more
//   .state/lock                                        held by the agent that works here
namespace cachewarm::agent {

inline constexpr std::string_view kGenerations = ".gen";
inline constexpr std::string_view kStaging = ".staging";
inline constexpr std::string_view kState = ".state";
inline constexpr std::string_view kGenerationRecords = ".state/generations";
inline constexpr std::string_view kLinkRecords = ".state/links";
inline constexpr std::string_view kCaptureRecords = ".state/captures";
inline constexpr std::string_view kQuarantineRecords = ".state/quarantine";
inline constexpr std::string_view kDamagedRecords = ".state/damaged";

// Of every directory in a tree; no sticky bit: fs.protected_regular would refuse O_CREAT.
inline constexpr mode_t kTreeMode = 0777;

std::string MountParent(const Mount& mount);  // "<ns>/<name>/<uid>"
std::string MountPath(const Mount& mount);
// What the link of a mount holds: relative, so that the root may be mounted anywhere.
std::string LinkTarget(std::string_view generation);
// The generation that such a text names; empty for any other text.
std::string TargetGeneration(std::string_view target);

std::string GenerationPath(std::string_view id);
std::string StagingPath(std::string_view id);
std::string GenerationRecordPath(std::string_view id);
std::string EntriesRecordPath(std::string_view id);
std::string ScrubRecordPath(std::string_view id);
std::string LinkRecordPath(const Mount& mount);
// `id` is a capture request's; it may hold any byte and is hashed.
std::string CaptureRecordPath(std::string_view id);

std::string QuarantinedBundlePath(std::string_view warmup_uid, const Digest& digest);
std::string DamagedTreePath(std::string_view id);
// The generation that such a path is of; any text for any other path.
std::string DamagedTreeOf(std::string_view path);

}  // namespace cachewarm::agent
