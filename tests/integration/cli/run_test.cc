// SPDX-License-Identifier: Apache-2.0
// The program "cachewarm run" with real commands, signals and stores.
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/small_disk.h"
#include "tests/integration/cli/run_fixture.h"

namespace cachewarm::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// False for a process that has ended, also if its parent has not reaped it.
bool IsRunning(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/stat");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t name_end = text.rfind(") ");
  return name_end != std::string::npos && text.substr(name_end + 2, 1) != "Z";
}

TEST_F(RunTest, SignalsReachTheCommandAsTheyAre) {
  const std::string script =
      "for s in INT HUP USR1 USR2 QUIT WINCH; do trap \"echo $s >> $1/got\" $s; done; "
      "trap 'exit 9' TERM; " +
      std::string(kServe);
  Start start(Call({}, script));
  AwaitPid();
  std::string expected;
  for (const auto& [number, name] : std::vector<std::pair<int, std::string>>{{SIGINT, "INT"},
                                                                             {SIGHUP, "HUP"},
                                                                             {SIGUSR1, "USR1"},
                                                                             {SIGUSR2, "USR2"},
                                                                             {SIGQUIT, "QUIT"},
                                                                             {SIGWINCH, "WINCH"}}) {
    start.program.Signal(number);
    expected += name + "\n";
    ASSERT_TRUE(Await([&] { return Read("got") == expected; })) << name << Read("got");
  }
  start.program.Signal(SIGTERM);
  EXPECT_EQ(start.program.Wait(), 9);
}

TEST_F(RunTest, RepeatedSignalReachesTheCommandEachTime) {
  Start start(Call({}, "trap 'echo x >> $1/got' TERM; trap 'exit 4' INT; " + std::string(kServe)));
  AwaitPid();
  for (const std::string expected : {"x\n", "x\nx\n", "x\nx\nx\n"}) {
    start.program.Signal(SIGTERM);
    ASSERT_TRUE(Await([&] { return Read("got") == expected; }));
  }
  start.program.Signal(SIGINT);
  EXPECT_EQ(start.program.Wait(), 4);
}

TEST_F(RunTest, TerminalIsThatOfTheCommandAndInterruptsItOnce) {
  Words words =
      Call({},
           "test -t 0 && test -t 1 && test -t 2 && echo yes > $1/tty; trap 'exit 9' TERM; "
           "trap 'echo x >> $1/got' INT; " +
               std::string(kServe));
  words.insert(words.begin(), fakes::BuiltProgram(CACHEWARM_CLI));
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  int terminal = -1;
  const pid_t process = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (process == 0) {
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  AwaitPid();
  EXPECT_EQ(Read("tty"), "yes\n");
  ASSERT_EQ(::write(terminal, "\x03", 1), 1);  // Ctrl-C: the terminal signals the whole group
  EXPECT_TRUE(Await([&] { return !Read("got").empty(); }));
  ::kill(process, SIGTERM);
  int status = 0;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_EQ(WEXITSTATUS(status), 9);
  EXPECT_EQ(Read("got"), "x\n");
  ::close(terminal);
}

TEST_F(RunTest, CommandDiesWithCachewarm) {
  Start start(Call({}, kServe));
  const pid_t command = AwaitPid();
  start.program.Signal(SIGKILL);
  EXPECT_EQ(start.program.Wait(), 128 + SIGKILL);
  EXPECT_TRUE(Await([&] { return !IsRunning(command); }));
}

TEST_F(RunTest, ExitCodeAndOutputAreThoseOfTheCommand) {
  const std::string script = "printf 'a\\0b\\nno newline'; printf 'err\\r\\n' >&2; exit 7";
  for (const Words& options : {Words{}, Words{"--ready-log", "^never$"}}) {
    Start start(Call(options, script));
    EXPECT_EQ(start.program.Wait(), 7);
    EXPECT_EQ(start.program.out(), std::string("a\0b\nno newline", 14));
    EXPECT_EQ(start.program.log(), "err\r\n");
  }
  EXPECT_EQ(Start(Call({}, "kill -9 $$")).program.Wait(), 137);
}

TEST_F(RunTest, LargeOutputPassesThroughTheTap) {
  const std::string script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done";
  EXPECT_EQ(Output(Call({"--ready-log", "x"}, script)), Output(Call({}, script)));
}

TEST_F(RunTest, DescendantThatKeepsTheOutputOpenDoesNotDelayTheEnd) {
  EXPECT_EQ(Output(Call({"--ready-log", "x"}, "sleep 1000 & echo $! > $1/pid; echo started")),
            "started\n");
  ::kill(AwaitPid(), SIGKILL);
}

TEST_F(RunTest, ServerKilledAfterItWasReadyIsPublishedAllTheSame) {
  Start start(Call({"--ready-after-quiet", "1"}, std::string(kCompile) + kServe));
  const pid_t command = AwaitPid();
  ASSERT_TRUE(Await([&] { return start.program.Logged("published 1 files"); }))
      << start.program.log();
  std::filesystem::remove_all(temp_ / "cache");  // nothing is left to publish at the end
  ::kill(command, SIGKILL);
  EXPECT_EQ(start.program.Wait(), 137);
  EXPECT_EQ(Output(Call({}, kCompile, "other")), "warm\n");
}

TEST_F(RunTest, PublishesOnceTheLogMatchesAndAgainAtTheEnd) {
  const std::string script =
      std::string(kCompile) +
      "until [ -e $1/go ]; do sleep 0.01; done; echo startup complete >&2; "
      "until [ -e $1/end ]; do sleep 0.01; done; echo 2 > $TORCHINDUCTOR_CACHE_DIR/ab/cnext.py";
  Start start(
      Call({"--ready-log", "^startup (done|complete)$", "--ready-after-quiet", "1"}, script));
  ASSERT_TRUE(Await([&] { return Exists("cache/inductor/ab/cabcd.py"); }));
  EXPECT_FALSE(Exists("store/run/index.json")) << "the command is not ready yet";
  temp_.Write("go", "");
  ASSERT_TRUE(Await([&] { return start.program.Logged("published 1 files"); }));
  temp_.Write("end", "");
  EXPECT_EQ(start.program.Wait(), 0);
  EXPECT_THAT(start.program.log(), HasSubstr("published 2 files"));
}

TEST_F(RunTest, PublishesOnceTheUrlAnswers) {
  std::atomic<bool> is_ready = false;
  std::atomic<int> refused = 0;
  fakes::RawServer server([&](fakes::RawConnection& connection, int) {
    while (!connection.ReadRequest().empty()) {
      refused += is_ready ? 0 : 1;
      connection.Write(fakes::RawResponse(is_ready ? 200 : 503, "{}"));
    }
  });
  Start start(Call({"--ready-url", server.Url("/health"), "--ready-after-quiet", "1"},
                   std::string(kCompile) + kServe));
  ASSERT_TRUE(Await([&] { return refused > 3; }));
  EXPECT_FALSE(Exists("store/run/index.json")) << "the command is not ready yet";
  is_ready = true;
  EXPECT_TRUE(Await([&] { return start.program.Logged("published 1 files"); }));
  start.program.Signal(SIGTERM);
  EXPECT_EQ(start.program.Wait(), 128 + SIGTERM);
}

TEST_F(RunTest, QuietOfZeroPublishesOnlyAtTheEnd) {
  Start start(Call({"--ready-after-quiet", "0"},
                   std::string(kCompile) + "until [ -e $1/end ]; do sleep 0.01; done"));
  ASSERT_TRUE(Await([&] { return Exists("cache/inductor/ab/cabcd.py"); }));
  temp_.Write("end", "");
  EXPECT_EQ(start.program.Wait(), 0);
  EXPECT_THAT(start.program.log(), HasSubstr("published 1 files"));
}

TEST_F(RunTest, StoreThatDoesNotAnswerDelaysTheCommandNoLongerThanMaxWait) {
  fakes::RawServer silent([](fakes::RawConnection& connection, int) {
    connection.ReadRequest();
    connection.BlockUntilStop();
  });
  Words words = Call({"--max-wait", "1"}, kCompile);
  words[2] = "oci://127.0.0.1:" + std::to_string(silent.port());
  Start start(words);
  EXPECT_EQ(start.program.Wait(), 0);
  EXPECT_EQ(start.program.out(), "cold\n");
  EXPECT_THAT(start.program.log(), HasSubstr("within 1s (--max-wait); starting cold"));
  EXPECT_THAT(start.program.log(), HasSubstr("nothing was published"));
}

TEST_F(RunTest, SignalDuringTheFetchEndsWithoutTheCommand) {
  std::atomic<bool> asked = false;
  fakes::RawServer silent([&](fakes::RawConnection& connection, int) {
    connection.ReadRequest();
    asked = true;
    connection.BlockUntilStop();
  });
  Words words = Call({}, kCompile);
  words[2] = "oci://127.0.0.1:" + std::to_string(silent.port());
  Start start(words);
  ASSERT_TRUE(Await([&] { return asked.load(); }));
  start.program.Signal(SIGHUP);
  EXPECT_EQ(start.program.Wait(), 128 + SIGHUP);
  EXPECT_EQ(start.program.out(), "");
}

TEST_F(RunTest, StoreThatDisappearsInTheMiddleDoesNotTouchTheCommand) {
  ASSERT_EQ(Output(Call({}, kCompile)), "cold\n");
  Start start(Call({"--ready-after-quiet", "1"},
                   std::string(kCompile) + "until [ -e $1/end ]; do sleep 0.01; done; exit 3"));
  ASSERT_TRUE(Await([&] { return start.program.out() == "warm\n"; }));
  std::filesystem::remove_all(temp_ / "store");
  temp_.Write("store", "a file where the store was");
  temp_.Write("cache/inductor/ab/cnext.py", "print(2)\n");
  temp_.Write("end", "");
  EXPECT_EQ(start.program.Wait(), 3);
  EXPECT_THAT(start.program.log(), HasSubstr("nothing published"));
  std::filesystem::remove(temp_ / "store");
  Start later(Call({}, kCompile));
  EXPECT_EQ(later.program.Wait(), 0);
  EXPECT_THAT(later.program.log(), HasSubstr("published 2 files"));
}

TEST_F(RunTest, FilledDirectoryIsRefreshedFromTheStore) {
  ASSERT_EQ(Output(Call({}, kCompile, "one")), "cold\n");
  ASSERT_EQ(Output(Call({}, kCompile, "two")), "warm\n");
  temp_.Write("two/inductor/ab/cnext.py", "print(2)\n");
  ASSERT_EQ(Output(Call({}, kCompile, "two")), "warm\n");
  EXPECT_EQ(Output(Call({}, "cat $TORCHINDUCTOR_CACHE_DIR/ab/cnext.py", "one")), "print(2)\n");
}

TEST_F(RunTest, OtherCpuClassInASharedDirectoryStartsColdAndPublishesOnlyItsOwnFiles) {
  ASSERT_EQ(Output(Call({}, kCompile)), "cold\n");
  temp_.Write("cache/inductor/ab/camd.py", "of the other machine\n");
  Start other(Call({}, kCompile, "cache", "intel.json"));
  EXPECT_EQ(other.program.Wait(), 0);
  EXPECT_EQ(other.program.out(), "cold\n");
  EXPECT_THAT(other.program.log(), HasSubstr("belongs to GPU type cpu and CPU class x86-64-v4"));
  EXPECT_THAT(other.program.log(), HasSubstr("published 1 files"));
  EXPECT_EQ(Output(Call({}, "ls $TORCHINDUCTOR_CACHE_DIR/ab", "fresh", "intel.json")),
            "cabcd.py\n");
}

TEST_F(RunTest, OtherEngineVersionUnderTheSameNameStartsCold) {
  // The interpreter of these environments is a shell, which their programs are written for.
  const auto start = [&](const std::string& venv, const std::string& dir) {
    Words words = Call({}, "", dir);
    words.resize(words.size() - 5);
    words.push_back(temp_ / (venv + "/bin/serve"));
    return Output(words);
  };
  for (const std::string torch : {"2.13.0", "2.15.0"}) {
    temp_.Write(torch + "/pyvenv.cfg", "home = /usr/bin\n");
    temp_.Write(torch + "/bin/serve", "#!" + (temp_ / torch) + "/bin/python3\n" + kCompile + "\n");
    std::filesystem::permissions(temp_ / (torch + "/bin/serve"), std::filesystem::perms::owner_all);
    std::filesystem::create_symlink("/bin/sh", temp_ / (torch + "/bin/python3"));
    std::filesystem::create_directories(
        temp_ / (torch + "/lib/python3.11/site-packages/torch-" + torch + ".dist-info"));
  }
  EXPECT_EQ(start("2.13.0", "one"), "cold\n");
  EXPECT_EQ(start("2.13.0", "two"), "warm\n");
  EXPECT_EQ(start("2.15.0", "three"), "cold\n");
  EXPECT_EQ(start("2.15.0", "four"), "warm\n");
}

TEST_F(RunTest, DefaultDirectoryEndsInTheKey) {
  Words words = {"run",   "--store",      temp_ / "store",    "--name",
                 "llama", "--node-facts", temp_ / "amd.json", "--image",
                 "one",   "--",           "/bin/sh",          "-c",
                 kCompile};
  ::setenv("XDG_CACHE_HOME", (temp_ / "xdg").c_str(), 1);
  EXPECT_EQ(Output(words), "cold\n");
  words[8] = "two";
  EXPECT_EQ(Output(words), "cold\n") << "another image has another key";
  ::unsetenv("XDG_CACHE_HOME");
  int directories = 0;
  for (const auto& each : std::filesystem::directory_iterator(temp_ / "xdg/cachewarm/llama")) {
    EXPECT_EQ(each.path().filename().string().size(), 8U);
    EXPECT_TRUE(std::filesystem::exists(each.path() / ".cachewarm/machine.json"));
    ++directories;
  }
  EXPECT_EQ(directories, 2);
}

TEST_F(RunTest, TwentyReplicasAtOnceLeaveOneCompleteBundle) {
  std::vector<std::unique_ptr<Start>> replicas;
  for (int i = 0; i < 20; ++i) {
    const std::string number = std::to_string(i);
    replicas.push_back(std::make_unique<Start>(Call({"--ready-after-quiet", "1"},
                                                    std::string(kCompile) +
                                                        "echo > $TORCHINDUCTOR_CACHE_DIR/ab/cown" +
                                                        number + ".py; exit " + number,
                                                    "replica" + number)));
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(replicas[static_cast<size_t>(i)]->program.Wait(), i)
        << replicas[static_cast<size_t>(i)]->program.log();
  }
  // A replica that others overtook five times publishes at its next end.
  for (int i = 0; i < 20; ++i) {
    Output(Call({}, "exit 0", "replica" + std::to_string(i)));
  }
  EXPECT_EQ(Output(Call({}, "ls $TORCHINDUCTOR_CACHE_DIR/ab | wc -l", "fresh")), "21\n");
}

TEST_F(RunTest, KilledWhilePublishingLeavesAStoreThatTheNextRunUses) {
  for (int kill_after = 0; kill_after < 4; ++kill_after) {
    const std::string dir = "cache" + std::to_string(kill_after);
    Start start(Call({"--ready-after-quiet", "1"}, std::string(kCompile) + kServe, dir));
    AwaitPid();
    // The first files that a publication makes, in their order.
    const std::vector<std::string> steps = {"", "store/run/.uploads", "store/run/blobs/sha256",
                                            "store/run/index.json"};
    const std::string& step = steps[static_cast<size_t>(kill_after)];
    ASSERT_TRUE(Await([&] { return step.empty() || Exists(step); }));
    start.program.Signal(SIGKILL);
    EXPECT_EQ(start.program.Wait(), 128 + SIGKILL);
    std::filesystem::remove(temp_ / "pid");
    Start next(Call({}, kCompile, "next" + std::to_string(kill_after)));
    EXPECT_EQ(next.program.Wait(), 0);
    EXPECT_THAT(next.program.log(), Not(HasSubstr("error")));
    EXPECT_EQ(Output(Call({}, kCompile, "last" + std::to_string(kill_after))), "warm\n");
    std::filesystem::remove_all(temp_ / "store");
  }
}

TEST_F(RunTest, FullDiskOfTheCacheStartsTheCommandCold) {
  ASSERT_EQ(Output(Call({}, kCompile)), "cold\n");
  const SmallDisk disk(512);
  if (disk.error() != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  Words words = Call({}, "test -e $TORCHINDUCTOR_CACHE_DIR/ab/cabcd.py && echo warm || echo cold");
  words[4] = disk / "cache";
  Start start(words);
  EXPECT_EQ(start.program.Wait(), 0);
  EXPECT_EQ(start.program.out(), "cold\n");
  EXPECT_THAT(start.program.log(), HasSubstr("must stay free"));
}

TEST_F(RunTest, FullDiskOfTheStoreDoesNotTouchTheCommand) {
  const SmallDisk disk(512);
  if (disk.error() != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  disk.FillUntilFree(4);
  Words words = Call({}, std::string(kCompile) +
                             "head -c 900000 /dev/urandom > "
                             "$TORCHINDUCTOR_CACHE_DIR/ab/cbig.py; exit 5");
  words[2] = disk / "store";
  Start start(words);
  EXPECT_EQ(start.program.Wait(), 5);
  EXPECT_THAT(start.program.log(), HasSubstr("nothing published"));
}

TEST_F(RunTest, MissingAndUnusableCommandsHaveTheCodesOfAShell) {
  Words words = Call({}, "");
  words.resize(words.size() - 5);
  Words missing = words;
  missing.insert(missing.end(), "/nonexistent/server");
  EXPECT_EQ(Start(missing).program.Wait(), 127);
  words.insert(words.end(), "/etc/passwd");
  EXPECT_EQ(Start(words).program.Wait(), 126);
}

}  // namespace
}  // namespace cachewarm::cli
