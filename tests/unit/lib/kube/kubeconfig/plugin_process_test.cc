// SPDX-License-Identifier: Apache-2.0
// Runs shell scripts as credential plugins.
#include "lib/kube/kubeconfig/plugin_process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/fs/fd.h"
#include "tests/fakes/await.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns false also for a process that has ended and was not waited for.
bool IsRunning(const std::string& process) {
  std::ifstream stat("/proc/" + process + "/stat");
  std::string id;
  std::string name;
  std::string state;
  return stat >> id >> name >> state && state != "Z";
}

class PluginProcessTest : public ::testing::Test {
 protected:
  // Writes an executable script and returns its path.
  std::string Script(const std::string& name, const std::string& body) {
    folder_.Write(name, "#!/bin/sh\n" + body);
    ::chmod((folder_ / name).c_str(), 0755);
    return folder_ / name;
  }
  absl::StatusOr<std::string> Run(const ExecPlugin& plugin, std::stop_token stop = {}) {
    return RunPlugin(plugin, context_, SystemClock(), std::move(stop));
  }
  absl::StatusOr<std::string> RunScript(const std::string& body, std::stop_token stop = {}) {
    return Run({.user = "dev", .command = Script("login", body), .install_hint = "install login"},
               std::move(stop));
  }
  std::string FirstLine(const std::string& name) {
    std::string line;
    std::ifstream file(folder_ / name);
    return std::getline(file, line) ? line : "";
  }

  TempDir folder_;
  std::string errors_;
  PluginContext context_{
      .environment = {{"PATH", "/usr/bin:/bin"}, {"KEPT", "yes"}, {"REPLACED", "old"}},
      .on_stderr = [this](std::string_view bytes) { errors_ += bytes; }};
};

TEST_F(PluginProcessTest, PassesArgumentsAndVariables) {
  const std::string command =
      Script("login", "printf '%s|' \"$@\"; echo \"$KEPT $REPLACED $ADDED $0\"; cat\n");
  const auto output = Run({.command = command,
                           .arguments = {"a b", "", "$KEPT"},
                           .environment = {{"REPLACED", "new"}, {"ADDED", "x=y"}}});
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(*output, "a b||$KEPT|yes new x=y " + command + "\n");
}

TEST_F(PluginProcessTest, DescribesItselfInAVariable) {
  const auto output = Run({.api_version = "client.authentication.k8s.io/v1",
                           .command = Script("login", "echo \"$KUBERNETES_EXEC_INFO\""),
                           .input = ExecPlugin::Input::kIfTerminal,
                           .cluster = R"({"server":"https://a"})"});
  ASSERT_TRUE(output.ok()) << output.status();
  const auto info = codec::ParseJson(*output);
  ASSERT_TRUE(info.ok()) << *output;
  EXPECT_EQ((*info)["spec"]["interactive"], false);
  EXPECT_EQ((*info)["spec"]["cluster"]["server"], "https://a");
}

TEST_F(PluginProcessTest, NamesAreFoundInPathOnly) {
  Script("bin/cw-login", "echo found");
  folder_.Write("first/cw-login", "not executable");
  std::filesystem::create_directories(folder_ / "second/cw-login");
  context_.environment["PATH"] =
      fmt::format("relative::{0}/first:{0}/second:{0}/bin:/bin", folder_.path());
  EXPECT_EQ(Run({.command = "cw-login"}).value_or(""), "found\n");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  context_.environment["PATH"] = "bin:./bin";
  EXPECT_THAT(Message(Run({.command = "cw-login"}).status()), HasSubstr("not found in PATH"))
      << "the working directory is never searched";
  std::filesystem::current_path(before);
  context_.environment["PATH"] = "/bin";
  EXPECT_THAT(Message(Run({.command = "cw-login"}).status()), HasSubstr("not found in PATH"));
  context_.environment.erase("PATH");
  EXPECT_THAT(Message(Run({.command = "cw-login"}).status()), HasSubstr("not found in PATH"));
  EXPECT_THAT(Message(Run({.command = folder_ / "first/cw-login"}).status()),
              HasSubstr("no such executable file"));
}

TEST_F(PluginProcessTest, ErrorsNamePluginUserCodeAndHint) {
  const absl::Status failed = RunScript("echo expired session >&2; exit 42").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(failed));
  for (const std::string& part : {folder_ / "login", std::string("user \"dev\""),
                                  std::string("exit code 42"), std::string("\ninstall login")}) {
    EXPECT_THAT(Message(failed), HasSubstr(part));
  }
  EXPECT_EQ(errors_, "expired session\n");
  EXPECT_THAT(Message(RunScript("kill -9 $$").status()), HasSubstr("signal 9"));
  const absl::Status missing =
      Run({.user = "dev", .command = "no-such-login", .install_hint = "install it"}).status();
  EXPECT_THAT(Message(missing), HasSubstr("no-such-login of user \"dev\": not found in PATH"));
  EXPECT_THAT(Message(missing), HasSubstr("\ninstall it"));
  const absl::Status long_hint =
      Run({.command = "no-such-login", .install_hint = std::string(100'000, 'x')}).status();
  EXPECT_LT(Message(long_hint).size(), 3000U);
  folder_.Write("broken", "#!/no/such/interpreter\n");
  ::chmod((folder_ / "broken").c_str(), 0755);
  EXPECT_THAT(Message(Run({.command = folder_ / "broken"}).status()), HasSubstr("broken"));
}

TEST_F(PluginProcessTest, OutputIsBounded) {
  EXPECT_EQ(RunScript("head -c 1048576 /dev/zero").value_or("").size(), 1U << 20U);
  EXPECT_THAT(Message(RunScript("head -c 1048577 /dev/zero").status()),
              HasSubstr("more than 1048576 bytes"));
  EXPECT_THAT(Message(RunScript("cat /dev/zero").status()), HasSubstr("more than 1048576 bytes"));
  EXPECT_EQ(RunScript("head -c 3000000 /dev/zero >&2; echo ok").value_or(""), "ok\n")
      << "more error output is discarded";
  EXPECT_EQ(errors_.size(), 1U << 20U);
}

TEST_F(PluginProcessTest, DeadlineEndsThePluginAndItsChildren) {
  context_.deadline = Duration(1500);
  const absl::Status status =
      RunScript("trap '' TERM; sleep 600 & echo $! > " + (folder_ / "child") + "; wait; wait")
          .status();
  EXPECT_THAT(Message(status), HasSubstr("did not end within 1s"));
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << "requests are not retried";
  const std::string child = FirstLine("child");
  ASSERT_NE(child, "");
  EXPECT_TRUE(fakes::Await([&child] { return !IsRunning(child); }));
}

TEST_F(PluginProcessTest, DeadlineEndsChildrenThatIgnoreSigterm) {
  context_.deadline = Duration(1500);
  const std::string child = Script(
      "stubborn", "trap '' TERM; echo $$ > " + (folder_ / "child") + "; while :; do sleep 1; done");
  EXPECT_FALSE(RunScript(child + " & trap 'exit 0' TERM; wait").ok());
  const std::string id = FirstLine("child");
  ASSERT_NE(id, "");
  EXPECT_TRUE(fakes::Await([&id] { return !IsRunning(id); }));
}

TEST_F(PluginProcessTest, FloodOfErrorOutputDoesNotDelayTheDeadline) {
  context_.deadline = Duration(200);
  EXPECT_THAT(Message(RunScript("cat /dev/zero >&2").status()), HasSubstr("did not end within"));
}

TEST_F(PluginProcessTest, StopEndsThePlugin) {
  std::stop_source stop;
  const std::jthread stopper([&] {
    fakes::Await([&] { return std::filesystem::exists(folder_ / "started"); });
    stop.request_stop();
  });
  const absl::Status status =
      RunScript("touch " + (folder_ / "started") + "; exec sleep 600", stop.get_token()).status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST_F(PluginProcessTest, ProcessesThatOutliveThePluginDoNotBlock) {
  context_.deadline = Duration(60'000);
  const auto output = RunScript("sleep 600 & echo $! > " + (folder_ / "child") + "; echo token");
  EXPECT_EQ(output.value_or(""), "token\n");
  ::kill(std::stoi(FirstLine("child")), SIGKILL);
}

TEST_F(PluginProcessTest, InheritsNoOtherFilesAndDefaultSignals) {
  const fs::Fd leaked(::open("/dev/null", O_RDONLY));  // NOLINT(android-cloexec-open)
  ASSERT_TRUE(leaked.ok());
  const auto output = RunScript(fmt::format(
      "test -e /proc/self/fd/{} && echo leaked; grep -E 'Sig(Blk|Ign)' /proc/self/status",
      leaked.get()));
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_THAT(*output, Not(HasSubstr("leaked")));
  EXPECT_THAT(*output, HasSubstr("SigBlk:\t0000000000000000"));
}

class PluginTerminal : public PluginProcessTest {
 protected:
  PluginTerminal() : controller_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    ::grantpt(controller_.get());
    ::unlockpt(controller_.get());
    terminal_ = fs::Fd(::open(::ptsname(controller_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  void Type(const std::string& text) {
    ASSERT_EQ(::write(controller_.get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }

  fs::Fd controller_;
  fs::Fd terminal_;
};

TEST_F(PluginTerminal, OnlyInteractivePluginsReadTheTerminal) {
  const std::string command =
      Script("login", "read answer; echo \"$answer\" \"$KUBERNETES_EXEC_INFO\"");
  using Input = ExecPlugin::Input;
  const auto run = [&](Input input) {
    return Run({.command = command, .input = input}).value_or("");
  };
  EXPECT_THAT(Message(Run({.command = command, .input = Input::kAlways}).status()),
              HasSubstr("needs a terminal"));
  EXPECT_THAT(run(Input::kIfTerminal), HasSubstr(R"("interactive":false)"));
  context_.terminal = terminal_.get();
  for (const Input input : {Input::kIfTerminal, Input::kAlways}) {
    Type("password\n");
    EXPECT_THAT(run(input), HasSubstr("password"));
  }
  Type("password\n");
  EXPECT_THAT(run(Input::kNever), Not(HasSubstr("password")));
}

TEST_F(PluginTerminal, PluginsAtATerminalHaveALongerDeadline) {
  context_.terminal = terminal_.get();
  context_.deadline = Duration(60'000);
  context_.deadline_at_terminal = Duration(100);
  const absl::Status status =
      Run({.command = Script("login", "read answer"), .input = ExecPlugin::Input::kIfTerminal})
          .status();
  EXPECT_THAT(Message(status), HasSubstr("did not end within 100ms"));
}

}  // namespace
}  // namespace cachewarm::kube
