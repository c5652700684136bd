// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/log.h"
#include "lib/settings/settings.h"

// What each program does around its own work. For main and composition roots: this reads and
// changes the process.
namespace cachewarm::process {

// First thing in main, before any thread: blocks SIGTERM and SIGINT in every thread and returns
// them, to be taken by one that waits for them. SIGPIPE and SIGXFSZ are ignored: a closed peer and
// a file size limit are then errors of write(2), like a full disk.
sigset_t BlockSignals();

// For daemons, before any thread: one heap for all threads, given back to the kernel when it is
// free (mallopt(3)). The allocator's own choice, a heap a thread that only grows, held 37 MB of
// free memory in an operator that uses 4 MB.
void KeepMemoryLow();

// From now on the calling thread has the CPU and the disk when nobody else wants them (nice 19,
// idle I/O class). Where the kernel refuses, it works like any other.
void YieldToOthers();

std::optional<std::string> Environment(const std::string& name);

// What settings are read from: arguments of main, Environment(), the host name and files. One of
// more than 1 MiB is INVALID_ARGUMENT, one that cannot be read NOT_FOUND, both with its path.
settings::Sources SettingSources(int argc, char** argv, const std::string& version);

// Runs `work` on a thread of its own and returns its status. At the first of `signals`
// (BlockSignals() gave them) `work` is asked to stop; when it has not returned after `limit` the
// process ends with success, so that it never takes 2 s from SIGTERM: whatever it does may be
// killed at any instruction anyway.
inline constexpr std::chrono::milliseconds kStopWithin{1800};
// Called once, at the signal. A program that drains a server adds the time for it.
using StopLimit = std::function<std::chrono::milliseconds()>;
absl::Status RunUntilSignal(
    const sigset_t& signals, Log& log, const std::function<absl::Status(std::stop_token)>& work,
    const StopLimit& limit = [] { return kStopWithin; });

}  // namespace cachewarm::process
