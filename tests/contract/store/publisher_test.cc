// SPDX-License-Identifier: Apache-2.0
// Kills a program that publishes to a real registry, at every request of its upload.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "lib/bundle/store/open.h"
#include "lib/bundle/transfer.h"
#include "lib/fs/file.h"
#include "tests/contract/store/faulty_proxy.h"
#include "tests/contract/store/registry_process.h"
#include "tests/fakes/await.h"
#include "tests/unit/lib/bundle/trees.h"

extern char** environ;

namespace cachewarm::bundle {
namespace {

using Break = BrokenClient::Break;

constexpr char kTag[] = "k-1";
constexpr int kKilled = -1;

class KilledPublisher : public ::testing::TestWithParam<Break> {
 protected:
  void SetUp() override {
    if (RegistryProcess::Program().empty()) {
      GTEST_SKIP() << "CACHEWARM_REGISTRY_BIN is not set";
    }
    http::PrepareProcess();
    registry_ = std::make_unique<RegistryProcess>();
    store_ = *OpenStore({.url = "oci://" + registry_->address()}, SystemClock());
    // Larger than a chunk of an upload.
    tree_.Write("inductor/00/c0000.py", Noise(9'000'000, 1));
    tree_.Write("inductor/00/c0001.py", "print()\n");
  }

  // Runs "cachewarm pack" into the repository. Returns its exit status, or kKilled.
  int Pack(const std::string& host, const std::string& repository) {
    std::vector<std::string> words = {CACHEWARM_PROGRAM, "pack", tree_.path(),
                                      fmt::format("oci://{}/{}:{}", host, repository, kTag)};
    std::vector<char*> arguments;
    for (std::string& word : words) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    const std::string log = log_ / "log";
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(),
                                       O_WRONLY | O_CREAT | O_APPEND, 0644);
    ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    pid_t process = 0;
    EXPECT_EQ(::posix_spawn(&process, arguments[0], &files, nullptr, arguments.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&files);
    publisher_ = process;
    int status = 0;
    EXPECT_EQ(::waitpid(process, &status, 0), process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : kKilled;
  }

  // The same, but kills the program at its n-th write, which is then forwarded as GetParam() says.
  // The registry has processed it on return.
  int PackThroughAFrontThatKills(int n, const std::string& repository) {
    publisher_ = 0;
    std::atomic<int> writes = 0;
    const FaultyProxy proxy(
        {.registry = registry_->address(), .decide = [&](const http::Request& request) {
           const bool is_write =
               request.method != http::Method::kGet && request.method != http::Method::kHead;
           if (!is_write || writes++ != n) {
             return Break::kNot;
           }
           EXPECT_TRUE(fakes::Await([&] { return publisher_ != 0; }));
           ::kill(publisher_, SIGKILL);
           return GetParam();
         }});
    return Pack(proxy.address(), repository);
  }

  // Output of the programs.
  std::string Log() const { return fs::ReadNamedFile(log_ / "log", 1 << 20).value_or("no log"); }

  absl::Status Check(const std::string& repository, const Digest& digest) {
    const RepositoryRef place{*store_, repository};
    const auto bundle = ReadBundle(place, digest, {});
    return bundle.ok() ? Verify(place, *bundle, {}, {}) : bundle.status();
  }

  // Returns the manifests on the registry's disk, tagged or not.
  std::vector<Digest> Manifests(const std::string& repository) const {
    const auto directory = std::filesystem::path(registry_->content_directory()) /
                           "docker/registry/v2/repositories" / repository /
                           "_manifests/revisions/sha256";
    std::vector<Digest> manifests;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(directory, none)) {
      manifests.push_back(*Digest::Parse("sha256:" + entry.path().filename().string()));
    }
    return manifests;
  }

  const TempDir tree_;
  const TempDir log_;
  std::atomic<pid_t> publisher_ = 0;  // 0 until it is started
  std::unique_ptr<RegistryProcess> registry_;
  std::unique_ptr<Store> store_;
};

TEST_P(KilledPublisher, LeavesWholeBundleOrNone) {
  int killed = 0;
  for (int status = kKilled; status == kKilled; ++killed) {
    const std::string when = fmt::format("killed at write {}: ", killed);
    const std::string repository = fmt::format("team/llama-{}", killed);
    status = PackThroughAFrontThatKills(killed, repository);
    EXPECT_TRUE(status == kKilled || status == 0) << when << Log();
    const auto shown = store_->ResolveTag(repository, kTag, {});
    EXPECT_TRUE(absl::IsNotFound(shown.status()) || Check(repository, *shown).ok())
        << when << shown.status();
    for (const Digest& digest : Manifests(repository)) {
      EXPECT_TRUE(Check(repository, digest).ok()) << when << Check(repository, digest);
    }
    ASSERT_EQ(Pack(registry_->address(), repository), 0) << when << Log();
    const auto again = store_->ResolveTag(repository, kTag, {});
    ASSERT_TRUE(again.ok()) << when << again.status();
    EXPECT_TRUE(Check(repository, *again).ok()) << when << Check(repository, *again);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(killed, 6) << "two blobs, one of them in chunks, and a manifest";
}

// Only these two: before a request arrives is the same as after the previous one.
INSTANTIATE_TEST_SUITE_P(Moments, KilledPublisher,
                         ::testing::Values(Break::kHalfWay, Break::kAfterTheAnswer),
                         [](const auto& moment) {
                           return moment.param == Break::kHalfWay ? "half_way" : "after_it_arrived";
                         });

}  // namespace
}  // namespace cachewarm::bundle
