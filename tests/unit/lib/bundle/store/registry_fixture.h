// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "lib/bundle/store/registry/registry_store.h"
#include "tests/fakes/fake_http_client.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::bundle {

inline constexpr char kOrigin[] = "http://registry.test:5000";
inline constexpr char kRepository[] = "team/llama";
inline constexpr char kBlobUrl[] = "http://registry.test:5000/v2/base/team/llama/blobs/";

// A clock that advances instead of sleeping, and records the duration of each sleep.
class ImpatientClock : public Clock {
 public:
  // Now() returns this time until it is set again.
  void SetNow(WallTime time) { wall_ = time; }
  WallTime Now() const override { return wall_; }
  MonoTime Monotonic() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void WaitUntil(std::unique_lock<std::mutex>& /*lock*/, std::condition_variable_any& /*wake*/,
                 MonoTime deadline, std::stop_token stop) const override {
    const std::lock_guard lock(mutex_);
    if (!stop.stop_requested() && deadline > now_) {
      slept_.push_back(deadline - now_);
      now_ = deadline;
    }
  }
  std::vector<Duration> slept() const {
    const std::lock_guard lock(mutex_);
    return slept_;
  }

 private:
  WallTime wall_;
  mutable std::mutex mutex_;
  mutable MonoTime now_{std::chrono::seconds(1000)};
  mutable std::vector<Duration> slept_;
};

// A RegistryStore with chunks of 1,000 bytes and scripted responses.
class RegistryTest : public ::testing::Test {
 protected:
  RegistryTest() {
    auto client = std::make_unique<fakes::FakeHttpClient>();
    http_ = client.get();
    std::ofstream(temp_ / "config.json")
        << R"({"auths":{"registry.test:5000":{"username":"warm","password":"secret"}}})";
    store_ = std::make_unique<RegistryStore>(
        RegistryOptions{.session = {.origin = kOrigin,
                                    .host = "registry.test:5000",
                                    .auth_file = temp_ / "config.json"},
                        .base = "base",
                        .chunk_bytes = 1000},
        std::move(client), clock_, [] { return 0.0; });
  }

  absl::Status Read(const Digest& digest, int64_t bytes, int64_t offset = 0) {
    text_ = std::make_unique<TextSink>(1U << 20U);
    return store_->ReadBlob(kRepository, {.digest = digest, .offset = offset, .bytes = bytes},
                            *text_, {});
  }
  const std::string& text() { return text_->text(); }

  // Returns the n-th request.
  http::Request Sent(size_t n) { return http_->requests().at(n); }
  std::string HeaderSent(size_t n, const std::string& name) {
    return Sent(n).headers.Find(name).value_or("");
  }

  TempDir temp_;
  ImpatientClock clock_;
  fakes::FakeHttpClient* http_ = nullptr;
  std::unique_ptr<RegistryStore> store_;
  std::unique_ptr<TextSink> text_;
};

inline http::Response Partial(const std::string& blob, size_t start) {
  return {.status = 206,
          .headers = {{"Content-Range",
                       fmt::format("bytes {}-{}/{}", start, blob.size() - 1, blob.size())}},
          .body = blob.substr(start)};
}

}  // namespace cachewarm::bundle
