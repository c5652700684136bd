// SPDX-License-Identifier: Apache-2.0
#include "cli/child.h"

#include <csignal>

#include "gtest/gtest.h"
#include "lib/fs/file.h"
#include "tests/fakes/await.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::cli {
namespace {

ChildCommand Shell(const std::string& script) {
  return {.words = {"/bin/sh", "-c", script}, .environment = {{"PATH", "/usr/bin:/bin"}}};
}

int RunToEnd(const ChildCommand& command) {
  const auto child = Child::Start(command);
  return child.ok() ? (*child)->Wait().value_or(-1) : -1;
}

TEST(Child, ExitCodeIsReturned) {
  for (const int code : {0, 1, 42, 255}) {
    EXPECT_EQ(RunToEnd(Shell("exit " + std::to_string(code))), code);
  }
  EXPECT_EQ(RunToEnd(Shell("kill -9 $$")), 137);
}

TEST(Child, GetsOnlyGivenEnvironment) {
  ChildCommand command = Shell("test \"$CACHE\" = here && test -z \"$HOME\"");
  command.environment["CACHE"] = "here";
  EXPECT_EQ(RunToEnd(command), 0);
}

TEST(Child, GetsEverySignalAsItIs) {
  for (const int number : kForwardedSignals) {
    const TempDir temp;
    const fs::Dir dir = temp.Open();
    const auto child =
        Child::Start(Shell("trap 'exit " + std::to_string(number) + "' " + std::to_string(number) +
                           "; touch " + temp.path() + "/ready; while :; do sleep 0.01; done"));
    ASSERT_TRUE(child.ok()) << child.status();
    ASSERT_TRUE(fakes::Await([&] { return *dir.Exists("ready"); }));
    (*child)->Signal(number);
    EXPECT_EQ((*child)->Wait().value_or(-1), number);
    (*child)->Signal(number);  // has no effect after the end
  }
}

TEST(Child, DoesNotInheritBlockedSignals) {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &term, &before);
  EXPECT_EQ(RunToEnd(Shell("kill -TERM $$; exit 1")), 128 + SIGTERM);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(Child, KeepsSignalsIgnoredThatThisProgramInherited) {
  ChildCommand command = Shell("kill -HUP $$; exit 3");
  EXPECT_EQ(RunToEnd(command), 128 + SIGHUP);
  sigaddset(&command.signals.ignored, SIGHUP);
  EXPECT_EQ(RunToEnd(command), 3) << "as below nohup";
}

TEST(Child, MissingProgramIsNotFoundAndOtherFilesCannotBeExecuted) {
  EXPECT_TRUE(absl::IsNotFound(Child::Start({.words = {"/nonexistent"}}).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(Child::Start({.words = {"/etc/passwd"}}).status()));
}

TEST(SignalRelay, KeepsEarlySignalsForTheReceiver) {
  SignalRelay relay;
  relay.Deliver({.number = SIGTERM});
  relay.Deliver({.number = SIGHUP, .from_terminal = true});
  std::vector<int> received;
  relay.Receive([&](const ReceivedSignal& signal) { received.push_back(signal.number); });
  EXPECT_EQ(received, (std::vector<int>{SIGTERM, SIGHUP}));
  relay.Deliver({.number = SIGUSR1});
  EXPECT_EQ(received.size(), 3U);
}

TEST(SignalState, ReadsMaskAndIgnoredSignals) {
  const auto before = std::signal(SIGUSR2, SIG_IGN);
  const SignalState state = SignalState::Read();
  EXPECT_EQ(sigismember(&state.ignored, SIGUSR2), 1);
  EXPECT_EQ(sigismember(&state.ignored, SIGUSR1), 0);
  std::signal(SIGUSR2, before);
}

}  // namespace
}  // namespace cachewarm::cli
