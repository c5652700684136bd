// SPDX-License-Identifier: Apache-2.0
#include "cli/child.h"

#include <csignal>
#include <thread>

#include "gtest/gtest.h"
#include "lib/fs/file.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::cli {
namespace {

ChildCommand Shell(const std::string& script) {
  return {.words = {"/bin/sh", "-c", script}, .environment = {{"PATH", "/usr/bin:/bin"}}};
}

TEST(Child, ExitCodeIsReturned) {
  for (const int code : {0, 1, 42, 255}) {
    EXPECT_EQ(*RunChild(Shell("exit " + std::to_string(code)), {}), code);
  }
  EXPECT_EQ(*RunChild(Shell("kill -9 $$"), {}), 137);
}

TEST(Child, GetsOnlyGivenEnvironment) {
  ChildCommand command = Shell("test \"$CACHE\" = here && test -z \"$HOME\"");
  command.environment["CACHE"] = "here";
  EXPECT_EQ(*RunChild(command, {}), 0);
}

TEST(Child, StopIsForwardedAsSigterm) {
  const TempDir temp;
  const fs::Dir dir = temp.Open();
  std::stop_source stop;
  std::jthread stopper([&] {
    while (!*dir.Exists("ready")) {
      std::this_thread::yield();
    }
    stop.request_stop();
  });
  const auto code = RunChild(
      Shell("trap 'exit 9' TERM; touch " + temp.path() + "/ready; while :; do sleep 0.01; done"),
      stop.get_token());
  EXPECT_EQ(code.value_or(-1), 9);
}

TEST(Child, DoesNotInheritBlockedSignals) {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &term, &before);
  EXPECT_EQ(*RunChild(Shell("kill -TERM $$; exit 1"), {}), 128 + SIGTERM);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(Child, MissingProgramIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(RunChild({.words = {"/nonexistent"}}, {}).status()));
}

}  // namespace
}  // namespace cachewarm::cli
