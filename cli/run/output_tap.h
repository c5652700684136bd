// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <regex.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/statusor.h"
#include "lib/fs/fd.h"

namespace cachewarm::cli {

// A POSIX extended regular expression, as of "grep -E". Copies share it. Thread-safe.
class Pattern {
 public:
  // INVALID_ARGUMENT with the reason.
  static absl::StatusOr<Pattern> Parse(const std::string& text);
  bool Matches(const std::string& line) const;

 private:
  explicit Pattern(std::shared_ptr<const regex_t> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const regex_t> compiled_;
};

// Looks in a stream of bytes for a line that matches a pattern. A line ends at a line feed, a
// carriage return (progress bars) or after 64 KiB.
class LineMatcher {
 public:
  explicit LineMatcher(Pattern pattern) : pattern_(std::move(pattern)) {}
  // Adds bytes; returns true if a line that they complete matches.
  bool Feed(std::string_view bytes);
  // Ends the last line, which may lack a line feed; returns true if the line matches.
  bool Finish();

 private:
  Pattern pattern_;
  std::string line_;
};

// Forwards the output of a child unchanged to the output of this process, and looks in it for a
// line that matches a pattern. The child writes to a pipe, even if this process writes to a
// terminal.
class OutputTap {
 public:
  // Calls `on_match` once, on the tap's thread, for the first line of standard output or error that
  // matches.
  static absl::StatusOr<std::unique_ptr<OutputTap>> Open(const Pattern& pattern,
                                                         std::function<void()> on_match);
  // Call Finish() before.
  ~OutputTap();
  OutputTap(const OutputTap&) = delete;
  OutputTap& operator=(const OutputTap&) = delete;

  // Descriptors for the child, valid until Start().
  int out() const { return write_ends_[0].get(); }
  int err() const { return write_ends_[1].get(); }
  // Begins to pass bytes on. Call after the child was started.
  void Start();
  // Passes on what the child has written and ends; does not wait for descendants of the child that
  // still have the pipe open. Call once, after the child has ended. May be called without Start().
  void Finish();

 private:
  OutputTap(const Pattern& pattern, std::function<void()> on_match)
      : matchers_{LineMatcher(pattern), LineMatcher(pattern)}, on_match_(std::move(on_match)) {}
  void Run();
  // Passes on what stream `i` has now; closes it at its end.
  void Move(size_t i);
  void Report(bool matched);

  LineMatcher matchers_[2];
  std::function<void()> on_match_;
  fs::Fd read_ends_[2];
  fs::Fd write_ends_[2];
  fs::Fd wake_;
  std::thread thread_;
};

}  // namespace cachewarm::cli
