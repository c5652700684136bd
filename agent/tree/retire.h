// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/tree/links.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// The machine that uses a root directory.
struct RootUser {
  std::string node;     // NodeRecord()
  std::string boot_id;  // of the kernel; empty: unknown
  // False: the driver does not answer yet, so `node` has the GPU type of the earlier use.
  bool is_gpu_known = true;
};

// Retires all trees if this root was last used by a node with another GPU type or CPU class, for
// example before a disk or virtual machine was moved. Code that was compiled there may crash here,
// and engines do not check for that. Flips every link to an empty tree, and renames older trees to
// ".gen/retired-*", which no link can lead to.
//
// Containers keep the trees that they have mounted. If the machine has started since the last use,
// they started on this hardware, and kubelet did not wait for the agent: what they have mounted was
// compiled for the earlier hardware. The content of each linked tree is then moved into the trash
// first, so that they find an empty directory and compile. On the same boot they keep the content:
// the description of the hardware has changed, for example with a version of the agent.
//
// On the same hardware, if the machine has started since the last use: does the same to each tree
// of a bundle that has no durable mark (durable.h), because a power cut may have left any part of
// it.
//
// Then records `user` as the last user of the root. Returns the number of retired trees. Call at
// start, before any other step that prepares or activates trees. If the agent is killed during the
// call, the call at its next start completes the work. The boot is recorded only while the GPU type
// is known: the check is then done again once it is.
absl::StatusOr<int> RetireForeignTrees(const fs::Dir& root, const RootUser& user,
                                       const PrepareOptions& options);

// Returns true if the machine has started since the root was last used; false if one of the boots
// is unknown.
bool IsNewBoot(const fs::Dir& root, const std::string& boot_id);

// Returns the text that identifies a node with this GPU type and CPU class. An empty `gpu_type` is
// unknown, because the driver does not answer: the type that the root was last used with is assumed
// then. Returns "" if that is unknown too; the caller then does not retire.
std::string NodeRecord(const fs::Dir& root, const std::string& gpu_type,
                       const std::string& cpu_class);

}  // namespace cachewarm::agent
