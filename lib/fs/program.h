// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

// Executable files and their arguments.
namespace cachewarm::fs {

// Returns true if `path` is a regular file, or a link to one, that this process may execute.
bool IsProgram(const std::string& path);

// The arguments or the environment of a program, in the form that execve(2) and posix_spawn(3)
// take.
class ExecStrings {
 public:
  explicit ExecStrings(std::vector<std::string> texts);
  // Each variable becomes "NAME=VALUE".
  explicit ExecStrings(const std::map<std::string, std::string>& variables);
  ExecStrings(const ExecStrings&) = delete;
  ExecStrings& operator=(const ExecStrings&) = delete;

  // Returns the strings, with a null pointer behind the last one. They live as long as this object.
  char* const* pointers() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

}  // namespace cachewarm::fs
