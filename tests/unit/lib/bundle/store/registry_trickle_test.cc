// SPDX-License-Identifier: Apache-2.0
// Registries and mirrors that send a few bytes at a time, over real sockets.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/store/open.h"
#include "tests/fakes/await.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/raw_server.h"
#include "tests/unit/lib/bundle/store/registry_fixture.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using fakes::RawConnection;
using fakes::RawServer;

std::string Authority(const RawServer& server) {
  return fmt::format("127.0.0.1:{}", server.port());
}

// Returns the first byte of the requested range ("Range: bytes=17-99").
size_t FirstByte(const std::string& request) {
  const size_t at = request.find("bytes=");
  return at == std::string::npos ? 0 : std::stoul(request.substr(at + 6));
}

std::string PartialHead(size_t first, size_t size) {
  return fmt::format(
      "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {}-{}/{}\r\n\r\n",
      size - first, first, size - 1, size);
}

class TricklingRegistry : public ::testing::Test {
 protected:
  TricklingRegistry() { http::PrepareProcess(); }

  RawServer::Script Complete() {
    return [this](RawConnection& connection, int) {
      for (std::string request; !(request = connection.ReadRequest()).empty();) {
        ++complete_;
        const size_t first = FirstByte(request);
        connection.Write(PartialHead(first, blob_.size()));
        connection.Write(std::string_view(blob_).substr(first));
      }
    };
  }
  // Sends one byte every 10 s, until the client no longer takes them.
  RawServer::Script Trickling() {
    return [this](RawConnection& connection, int) {
      const size_t first = FirstByte(connection.ReadRequest());
      ++trickling_;
      // In chunks: the client waits for 256 KiB of a body with a length, or for its end.
      connection.Write(
          fmt::format("HTTP/1.1 206 Partial Content\r\nTransfer-Encoding: chunked\r\n"
                      "Content-Range: bytes {0}-{1}/{2}\r\n\r\n",
                      first, blob_.size() - 1, blob_.size()));
      for (size_t at = first; at < blob_.size(); ++at) {
        connection.Write(fakes::RawChunk(std::string_view(blob_).substr(at, 1)));
        if (!fakes::Await([&] { return taken_ == at + 1; }, std::chrono::seconds(2))) {
          break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // now the client waits again
        clock_.Advance(std::chrono::seconds(10));
      }
      connection.AwaitPeerClose();
    };
  }

  absl::Status Read(const StoreOptions& options) {
    const auto store = *OpenStore(options, clock_);
    return store->ReadBlob(
        "team/llama",
        {.digest = DigestOf(blob_), .offset = 0, .bytes = static_cast<int64_t>(blob_.size())},
        sink_, {});
  }

  // Counts what has arrived.
  class CountedText final : public Sink {
   public:
    explicit CountedText(std::atomic<size_t>& taken) : taken_(taken) {}
    absl::Status Write(std::string_view bytes) override {
      text += bytes;
      taken_ = text.size();
      return absl::OkStatus();
    }
    std::string text;

   private:
    std::atomic<size_t>& taken_;
  };

  const std::string blob_ = Noise(20'000, 1);
  fakes::FakeClock clock_;
  std::atomic<size_t> taken_ = 0;
  std::atomic<int> complete_ = 0;
  std::atomic<int> trickling_ = 0;
  CountedText sink_{taken_};
};

TEST_F(TricklingRegistry, MirrorIsLeftForTheRegistry) {
  const RawServer origin(Complete());
  const RawServer mirror(Trickling());
  const absl::Status read =
      Read({.url = "oci://" + Authority(origin), .mirrors = {Authority(mirror)}});
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_TRUE(sink_.text == blob_);
  EXPECT_EQ(trickling_, 1);
  EXPECT_EQ(complete_, 1);
}

TEST_F(TricklingRegistry, DownloadEndsWithDeadlineExceeded) {
  const RawServer origin(Trickling());
  const absl::Status read = Read({.url = "oci://" + Authority(origin)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(read)) << read;
  EXPECT_EQ(trickling_, 1);
}

TEST_F(RegistryTest, ServerThatSendsOneBytePerAttemptIsNotAskedForever) {
  const std::string blob = Noise(1000, 7);
  size_t first = 0;
  http_->Otherwise([&](const http::Request&) {
    return http::Response{.status = 206,
                          .headers = {{"Content-Range", fmt::format("bytes {}-999/1000", first)}},
                          .body = blob.substr(first++, 1)};
  });
  EXPECT_TRUE(absl::IsUnavailable(Read(DigestOf(blob), 1000)));
  EXPECT_EQ(http_->requests().size(), 4U);
}

TEST_F(RegistryTest, ManyFailuresBetweenManyBytesAreResumed) {
  const std::string blob = Noise(6 << 20, 8);
  size_t first = 0;
  http_->Otherwise([&](const http::Request&) {
    const size_t begin = first;
    first += 600 << 10;
    return http::Response{.status = 206,
                          .headers = {{"Content-Range", fmt::format("bytes {}-{}/{}", begin,
                                                                    blob.size() - 1, blob.size())}},
                          .body = blob.substr(begin, 600 << 10)};
  });
  TextSink text(blob.size());
  const absl::Status read = store_->ReadBlob(
      kRepository,
      {.digest = DigestOf(blob), .offset = 0, .bytes = static_cast<int64_t>(blob.size())}, text,
      {});
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_TRUE(text.text() == blob);
}

}  // namespace
}  // namespace cachewarm::bundle
