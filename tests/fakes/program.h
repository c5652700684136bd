// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace cachewarm::fakes {

// The path of a program that this build made, or of the one of that name in CACHEWARM_PROGRAMS.
inline std::string BuiltProgram(const std::string& path) {
  const char* folder = std::getenv("CACHEWARM_PROGRAMS");
  return folder == nullptr ? path : folder + path.substr(path.rfind('/'));
}

// A program as a process of its own, its output in files. Killed with the object.
class Program {
 public:
  // `words`: the program's path first. `folder` keeps what it prints.
  Program(std::vector<std::string> words, std::string folder) : folder_(std::move(folder)) {
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      Redirect("stdout", STDOUT_FILENO);
      Redirect("stderr", STDERR_FILENO);
      std::vector<char*> pointers;
      for (std::string& word : words) {
        pointers.push_back(word.data());
      }
      pointers.push_back(nullptr);
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
  }

  std::string out() const { return Text("stdout"); }
  std::string log() const { return Text("stderr"); }
  bool Logged(const std::string& part) const { return log().find(part) != std::string::npos; }

  void Signal(int signal) const { ::kill(process_, signal); }

  // The exit code, or 128 + the signal that ended it; none when it still runs after `limit`.
  std::optional<int> Wait(std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (::waitpid(process_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) {
        return std::nullopt;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  void Redirect(const std::string& name, int to) const {
    ::dup2(::open((folder_ + "/" + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), to);
  }
  std::string Text(const std::string& name) const {
    std::ifstream in(folder_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const std::string folder_;
  pid_t process_ = -1;
};

}  // namespace cachewarm::fakes
