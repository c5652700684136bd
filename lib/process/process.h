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

// Functions that read and change the state of the process, for main and the code that assembles a
// program.
namespace cachewarm::process {

// Blocks SIGTERM and SIGINT in every thread and returns them as a set for the thread that waits for
// them. Ignores SIGPIPE and SIGXFSZ: a closed peer and a file size limit then become errors of
// write(2). Call first in main, before any thread exists.
sigset_t BlockSignals();

// Gives the calling thread CPU and disk only when no other thread needs them (nice 19, idle I/O
// class). Ignores errors of the kernel.
void LowerThreadPriority();

std::optional<std::string> Environment(const std::string& name);

// Returns the sources of settings: arguments of main, Environment(), the host name and files.
// Errors of the file reader name the path: INVALID_ARGUMENT for a file of more than 1 MiB,
// NOT_FOUND for a missing file.
settings::Sources SettingSources(int argc, char** argv, const std::string& version);

// Default time limit between a signal and the end of the process.
inline constexpr std::chrono::milliseconds kStopWithin{1800};
// Returns the time limit of RunUntilSignal(), which calls it once, when the signal arrives. A
// program that drains a server returns kStopWithin plus the delay of the drain.
using StopLimit = std::function<std::chrono::milliseconds()>;
// Runs `work` on its own thread and returns its status. When one of `signals` (from BlockSignals())
// arrives, requests a stop of `work`. If `work` does not return within the time limit, the process
// exits with success, by default within 2 s of the signal. Such an exit is safe: every program
// tolerates being killed at any instruction.
absl::Status RunUntilSignal(
    const sigset_t& signals, Log& log, const std::function<absl::Status(std::stop_token)>& work,
    const StopLimit& limit = [] { return kStopWithin; });

}  // namespace cachewarm::process
