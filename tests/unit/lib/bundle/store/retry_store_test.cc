// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/retry/retry_store.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_store.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

constexpr char kRepository[] = "team/llama";

// Breaks off each read after a few bytes, until it is repaired.
class Brittle : public MemoryStore {
 public:
  absl::Status ReadBlob(const std::string& repository, const BlobRange& range, Sink& sink,
                        std::stop_token stop) override {
    offsets.push_back(range.offset);
    BlobRange part = range;
    part.bytes = std::min(part.bytes, breaks_after);
    CW_RETURN_IF_ERROR(MemoryStore::ReadBlob(repository, part, sink, stop));
    return part.bytes == range.bytes ? absl::OkStatus() : absl::AbortedError("stale file handle");
  }
  std::vector<int64_t> offsets;
  int64_t breaks_after = 0;
};

class RetryStoreTest : public ::testing::Test {
 protected:
  RetryStoreTest() {
    auto inner = std::make_unique<Brittle>();
    inner_ = inner.get();
    blob_ = *WriteSmallBlob(*inner_, kRepository, "0123456789", {});
    inner_->SetFault([this](std::string_view) {
      ++calls_;
      return fault_;
    });
    store_ = std::make_unique<RetryStore>(
        std::move(inner), SystemClock(), [] { return 0.0; },
        RetryOptions{.tries = 3, .backoff = {.first = Duration(1), .most = Duration(1)}});
  }

  absl::Status Read(Sink& sink) {
    return store_->ReadBlob(kRepository, {.digest = blob_.digest, .bytes = blob_.bytes}, sink, {});
  }

  int calls_ = 0;
  absl::Status fault_;
  Descriptor blob_;
  Brittle* inner_ = nullptr;
  std::unique_ptr<RetryStore> store_;
};

TEST_F(RetryStoreTest, RetriesTransientErrorsAndReturnsTheLast) {
  const Digest digest = blob_.digest;
  const struct {
    std::string name;
    std::function<absl::Status()> call;
  } calls[] = {
      {"HasBlob", [&] { return store_->HasBlob(kRepository, digest, {}).status(); }},
      {"StartBlob", [&] { return store_->StartBlob(kRepository, {}).status(); }},
      {"ReadManifest", [&] { return store_->ReadManifest(kRepository, digest, {}).status(); }},
      {"ResolveTag", [&] { return store_->ResolveTag(kRepository, "k", {}).status(); }},
      {"WriteManifest", [&] { return store_->WriteManifest(kRepository, "{}", "k", {}).status(); }},
  };
  const struct {
    absl::Status fault;
    int calls;
  } faults[] = {{absl::UnavailableError("the server is away"), 3},
                {absl::AbortedError("stale file handle"), 3},
                {absl::NotFoundError("no such thing"), 1},
                {absl::ResourceExhaustedError("disk full"), 1},
                {absl::DataLossError("bad"), 1},
                {absl::PermissionDeniedError("no"), 1}};
  for (const auto& call : calls) {
    for (const auto& fault : faults) {
      calls_ = 0;
      fault_ = fault.fault;
      EXPECT_EQ(call.call(), fault.fault) << call.name;
      EXPECT_EQ(calls_, fault.calls) << call.name << fault.fault;
    }
  }
}

TEST_F(RetryStoreTest, PingIsNotRetried) {
  fault_ = absl::UnavailableError("away");
  EXPECT_TRUE(absl::IsUnavailable(store_->Ping({})));
  EXPECT_EQ(calls_, 1);
}

TEST_F(RetryStoreTest, ReadResumesWhileItMakesProgress) {
  inner_->breaks_after = 1;
  TextSink text(100);
  const absl::Status read = Read(text);
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_EQ(text.text(), "0123456789");
  EXPECT_EQ(inner_->offsets, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(RetryStoreTest, ReadFailsWithoutProgress) {
  TextSink text(100);
  EXPECT_TRUE(absl::IsAborted(Read(text)));
  EXPECT_EQ(inner_->offsets.size(), 3U);
}

TEST_F(RetryStoreTest, SinkErrorEndsRead) {
  class Refusing : public Sink {
   public:
    absl::Status Write(std::string_view) override { return absl::UnavailableError("mine"); }
  };
  inner_->breaks_after = 100;
  Refusing sink;
  EXPECT_EQ(Read(sink), absl::UnavailableError("mine"));
  EXPECT_EQ(inner_->offsets.size(), 1U);
}

TEST_F(RetryStoreTest, StopEndsTheWait) {
  const fakes::FakeClock clock;  // does not advance
  auto inner = std::make_unique<MemoryStore>();
  inner->SetFault([](std::string_view) { return absl::UnavailableError("away"); });
  RetryStore store(std::move(inner), clock, [] { return 0.0; });
  std::stop_source stop;
  const std::jthread stopper([&] {
    clock.AwaitWaiters(1);
    stop.request_stop();
  });
  EXPECT_TRUE(
      absl::IsCancelled(store.HasBlob(kRepository, DigestOf("x"), stop.get_token()).status()));
}

}  // namespace
}  // namespace cachewarm::bundle
