// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cli/signals.h"
#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::cli {

// Exit codes; a stable interface for scripts.
enum ExitCode : int {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,
  kDamaged = 3,   // the bundle is damaged, or not signed with the key of --key
  kNotFound = 4,  // no such bundle or object of a cluster
  kSkipped = 5,   // nothing to load or save
  kInterrupted = 130,
};
ExitCode ExitCodeOf(const absl::Status& status);
// Returns the INVALID_ARGUMENT error of a wrong command line, whose exit code is kUsage.
absl::Status UsageError(const std::string& message);

// Streams, environment and other state of the process that a verb uses. Use on one thread; only
// `stop` is thread-safe.
struct Console {
  std::ostream& out;     // results
  std::ostream& err;     // progress and errors
  bool err_is_terminal;  // print progress only on a terminal
  const Clock& clock;
  std::stop_token stop;
  std::map<std::string, std::string> environment;
  int terminal = -1;  // descriptor of standard input if that is a terminal; -1 if not
  // `signals` delivers the signals that "run" forwards to its command; null: a signal only requests
  // `stop`. `inherited` is the signal state with which the command starts.
  SignalRelay* signals = nullptr;
  SignalState inherited = SignalState::Default();
  bool out_is_terminal = false;  // colours are printed only on a terminal

  std::string Environment(const std::string& name) const;
};

// Progress line such as "fetching 12.0 MB of 195 MB, 6 %", rewritten at most ten times a second.
// Prints nothing without a terminal or with --quiet. The destructor clears the line.
class Progress {
 public:
  Progress(Console& console, std::string_view what, bool quiet);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void Show(int64_t done_bytes, int64_t total_bytes);

 private:
  Console& console_;
  const std::string what_;
  const bool silent_;
  MonoTime next_;
  bool drawn_ = false;
};

// Formats bytes in decimal units: "195 MB", "6.2 kB".
std::string FormatBytes(int64_t bytes);

// Prints indented JSON and a line break.
void PrintJson(Console& console, const codec::Json& value);

}  // namespace cachewarm::cli
