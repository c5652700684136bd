// SPDX-License-Identifier: Apache-2.0
#include "lib/fs/program.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace cachewarm::fs {
namespace {

std::vector<std::string> Assignments(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> assignments;
  assignments.reserve(variables.size());
  for (const auto& [name, value] : variables) {
    assignments.push_back(fmt::format("{}={}", name, value));
  }
  return assignments;
}

}  // namespace

bool IsProgram(const std::string& path) {
  struct ::stat file {};
  return ::stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

ExecStrings::ExecStrings(std::vector<std::string> texts) : texts_(std::move(texts)) {
  pointers_.reserve(texts_.size() + 1);
  for (std::string& text : texts_) {
    pointers_.push_back(text.data());
  }
  pointers_.push_back(nullptr);
}

ExecStrings::ExecStrings(const std::map<std::string, std::string>& variables)
    : ExecStrings(Assignments(variables)) {}

}  // namespace cachewarm::fs
