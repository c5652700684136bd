// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <mutex>
#include <thread>

#include "fmt/format.h"
#include "lib/codec/json_path.h"
#include "tests/contract/kube/backend.h"
#include "tests/fakes/await.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

class WatchContract : public KubeContract {
 protected:
  void TearDown() override {
    Stop().IgnoreError();
    KubeContract::TearDown();
  }
  std::string ListVersion() {
    return codec::TextAt(Do(List(kLeases, {.ns = ns_})), {"metadata", "resourceVersion"});
  }
  void Start(WatchOptions options) {
    options.ns = ns_;
    watching_ = std::jthread([this, options](std::stop_token stop) {
      status_ = client().Watch(
          kube::Watch(kLeases, options),
          [this](WatchEvent event) {
            constexpr char kTypes[] = "+=-.";
            std::lock_guard lock(mutex_);
            if (event.type != WatchEventType::kBookmark) {
              seen_ += fmt::format("{}{} ", kTypes[static_cast<int>(event.type)],
                                   kube::NameOf(*event.object).name);
            }
            version_ = ResourceVersionOf(*event.object);
            return absl::OkStatus();
          },
          stop);
    });
  }
  absl::Status Stop() {
    watching_.request_stop();
    return Join();
  }
  absl::Status Join() {
    if (watching_.joinable()) {
      watching_.join();
    }
    return status_;
  }
  std::string Seen() {
    std::lock_guard lock(mutex_);
    return seen_;
  }
  std::string Version() {
    std::lock_guard lock(mutex_);
    return version_;
  }
  bool AwaitSeen(const std::string& wanted) {
    return fakes::Await([&] { return Seen() == wanted; });
  }

  std::mutex mutex_;
  std::string seen_;
  std::string version_;
  absl::Status status_;
  std::jthread watching_;
};
INSTANTIATE_TEST_SUITE_P(Api, WatchContract, testing::ValuesIn(Backends()),
                         [](const auto& each) { return each.param; });

TEST_P(WatchContract, WatchReportsChangesSinceVersionInOrder) {
  const std::string version = ListVersion();
  Do(Create(kLeases, Lease("before"), {}));
  Start({.resource_version = version});
  ASSERT_TRUE(AwaitSeen("+before ")) << Seen();
  Do(MergePatch(kLeases, NameOf("before"), {{"spec", {{"holderIdentity", "x"}}}}, {}));
  Do(Create(kLeases, Lease("after"), {}));
  Do(Delete(kLeases, NameOf("before"), {}));
  EXPECT_TRUE(AwaitSeen("+before =before +after -before ")) << Seen();
  EXPECT_NE(Version(), "");
  EXPECT_TRUE(absl::IsCancelled(Stop()));
}

TEST_P(WatchContract, WatchResumesFromReportedVersion) {
  Start({.resource_version = ListVersion()});
  Do(Create(kLeases, Lease("a"), {}));
  ASSERT_TRUE(AwaitSeen("+a "));
  const std::string version = Version();
  EXPECT_TRUE(absl::IsCancelled(Stop()));
  Do(Create(kLeases, Lease("b"), {}));
  Start({.resource_version = version});
  EXPECT_TRUE(AwaitSeen("+a +b ")) << Seen();
}

TEST_P(WatchContract, ObjectEntersAndLeavesSelector) {
  Do(Create(kLeases, Lease("a"), {}));
  Start({.label_selector = "app=x", .resource_version = ListVersion()});
  const auto label = [&](const Json& value) {
    Do(MergePatch(kLeases, NameOf("a"), {{"metadata", {{"labels", {{"app", value}}}}}}, {}));
  };
  label("y");
  label("x");
  label("y");
  EXPECT_TRUE(AwaitSeen("+a -a ")) << Seen();
}

TEST_P(WatchContract, WatchWithoutVersionStartsWithExistingObjects) {
  Do(Create(kLeases, Lease("a"), {}));
  Start({.resource_version = "0"});
  EXPECT_TRUE(AwaitSeen("+a ")) << Seen();
}

TEST_P(WatchContract, WatchEndsCleanlyAtTimeout) {
  Start({.resource_version = ListVersion(), .timeout_seconds = 1});
  EXPECT_TRUE(Join().ok()) << status_;
}

TEST_P(WatchContract, NoOpWriteProducesNoEvent) {
  Do(Create(kLeases, Lease("a"), {}));
  Start({.resource_version = ListVersion()});
  Do(MergePatch(kLeases, NameOf("a"), {{"spec", {{"holderIdentity", "someone"}}}}, {}));
  Do(MergePatch(kLeases, NameOf("a"), {{"spec", {{"holderIdentity", "else"}}}}, {}));
  EXPECT_TRUE(AwaitSeen("=a ")) << Seen();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(Seen(), "=a ");
}

TEST_P(WatchContract, MissingResourceIsNotFound) {
  constexpr Resource kNone{"none.example", "v1", "nones", "None"};
  EXPECT_EQ(client()
                .Watch(kube::Watch(kNone, {}), [](WatchEvent) { return absl::OkStatus(); }, {})
                .code(),
            absl::StatusCode::kNotFound);
}

TEST_P(WatchContract, StopsAtOnce) {
  Start({.resource_version = ListVersion()});
  Do(Create(kLeases, Lease("a"), {}));
  ASSERT_TRUE(AwaitSeen("+a "));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(absl::IsCancelled(Stop()));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

}  // namespace
}  // namespace cachewarm::kube
