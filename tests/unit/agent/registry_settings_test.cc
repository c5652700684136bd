// SPDX-License-Identifier: Apache-2.0
// Settings below `registry:`, each from the text of the agent's file through OpenStore() to the
// requests that a registry gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "agent/config.h"
#include "fmt/format.h"
#include "lib/bundle/store/open.h"
#include "lib/http/client.h"
#include "tests/fakes/authority.h"
#include "tests/fakes/await.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/temp_dir.h"
#include "tests/fakes/tunnel_proxy.h"

namespace cachewarm::agent {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kManifest[] = R"({"schemaVersion":2})";
constexpr char kRepository[] = "team/llama";
constexpr int64_t kBlobBytes = 256 << 10;

// Serves kManifest under every manifest's address and kBlobBytes of one letter under every blob's.
class PlayedRegistry {
 public:
  explicit PlayedRegistry(const fakes::RawServerOptions& options = {}, std::string password = "")
      : password_(std::move(password)),
        server_([this](fakes::RawConnection& connection, int) { Serve(connection); }, options) {}

  uint16_t port() const { return server_.port(); }
  std::string host() const { return fmt::format("127.0.0.1:{}", server_.port()); }
  std::vector<std::string> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  // The most requests that were under way at once. Each takes a moment.
  int most() const { return most_; }

 private:
  void Serve(fakes::RawConnection& connection) {
    for (std::string request = connection.ReadRequest(); !request.empty();
         request = connection.ReadRequest()) {
      {
        const std::lock_guard lock(mutex_);
        asked_.push_back(request);
      }
      const int running = ++running_;
      most_ = std::max(most_.load(), running);
      fakes::Await([this] { return running_ > 1; }, std::chrono::seconds(0));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      connection.Write(Answer(request));
      --running_;
    }
  }

  std::string Answer(const std::string& request) const {
    if (!password_.empty() && request.find("Basic " + password_) == std::string::npos) {
      return fakes::RawResponse(401, "", "WWW-Authenticate: Basic realm=\"played\"\r\n");
    }
    if (request.find("/blobs/") != std::string::npos) {
      return fakes::RawResponse(200, std::string(kBlobBytes, 'x'));
    }
    return fakes::RawResponse(200, kManifest,
                              "Content-Type: application/vnd.oci.image.manifest.v1+json\r\n");
  }

  const std::string password_;
  mutable std::mutex mutex_;
  std::vector<std::string> asked_;
  std::atomic<int> running_ = 0;
  std::atomic<int> most_ = 0;
  fakes::RawServer server_;
};

class CountingBytes final : public bundle::Sink {
 public:
  absl::Status Write(std::string_view bytes) override {
    count += static_cast<int64_t>(bytes.size());
    return absl::OkStatus();
  }
  std::atomic<int64_t> count = 0;
};

class RegistrySettings : public ::testing::Test {
 protected:
  RegistrySettings() { http::PrepareProcess(); }

  // The store that an agent with this file has.
  std::unique_ptr<bundle::Store> Open(const std::string& url, const std::string& registry,
                                      const Clock& clock = SystemClock()) {
    const std::string file = "store: " + url + "\nregistry: {" + registry + "}\n";
    const auto parsed = ParseConfig({.arguments = {"--config=/c.yaml"},
                                     .environment = [](const std::string&) { return std::nullopt; },
                                     .read_file = [&](const std::string&) { return file; },
                                     .host_name = "node-a",
                                     .version = "1"});
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    if (!parsed.ok()) {
      return nullptr;
    }
    auto store = bundle::OpenStore(parsed->config.store, clock);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  // A read that gives up soon: what a setting forbids is not worth the wait of every retry.
  static absl::Status Read(bundle::Store& store) {
    std::stop_source stop;
    auto reading = std::async(std::launch::async, [&] {
      return store.ReadManifest(kRepository, DigestOf(kManifest), stop.get_token()).status();
    });
    if (reading.wait_for(std::chrono::seconds(2)) != std::future_status::ready) {
      stop.request_stop();
    }
    return reading.get();
  }

  fakes::RawServerOptions Tls(const fakes::Authority& authority) const {
    const std::string leaf = authority.Issue("registry", "DNS:registry.test,IP:127.0.0.1");
    return {.certificate_file = leaf + ".crt", .key_file = leaf + ".key"};
  }

  TempDir folder_;
};

TEST_F(RegistrySettings, InsecureHostsAreSpokenToInPlainHttp) {
  const fakes::Authority authority(folder_.path(), "local");
  const PlayedRegistry registry;
  const std::string url = "oci://" + registry.host();
  // With an authority, loopback is expected to speak TLS too.
  const std::string ca_file = "caFile: " + authority.ca();
  EXPECT_FALSE(Read(*Open(url, ca_file)).ok());
  const absl::Status read = Read(*Open(url, ca_file + ", insecure: [\"" + registry.host() + "\"]"));
  EXPECT_TRUE(read.ok()) << read;
}

TEST_F(RegistrySettings, CaFileDecidesWhichServerIsTrusted) {
  const fakes::Authority local_ca(folder_.path(), "local");
  const fakes::Authority other(folder_.path(), "other");
  const PlayedRegistry registry(Tls(local_ca));
  const std::string url = "oci://" + registry.host();
  const absl::Status trusted = Read(*Open(url, "caFile: " + local_ca.ca()));
  EXPECT_TRUE(trusted.ok()) << trusted;
  EXPECT_FALSE(Read(*Open(url, "caFile: " + other.ca())).ok());
}

TEST_F(RegistrySettings, ClientCertificateIsShown) {
  const fakes::Authority local_ca(folder_.path(), "local");
  fakes::RawServerOptions options = Tls(local_ca);
  options.client_ca_file = local_ca.ca();
  const PlayedRegistry registry(options);
  const std::string url = "oci://" + registry.host();
  const std::string mine = local_ca.Issue("client", "DNS:client");
  const absl::Status shown = Read(
      *Open(url, fmt::format("caFile: {0}, clientCertificateFile: {1}.crt, clientKeyFile: {1}.key",
                             local_ca.ca(), mine)));
  EXPECT_TRUE(shown.ok()) << shown;
  EXPECT_FALSE(Read(*Open(url, "caFile: " + local_ca.ca())).ok());
}

TEST_F(RegistrySettings, AuthFileGivesTheCredentials) {
  const std::string credentials = "d2FybTpzZWNyZXQ=";  // warm:secret
  const PlayedRegistry registry({}, credentials);
  folder_.Write("auth.json", fmt::format(R"({{"auths":{{"{}":{{"auth":"{}"}}}}}})", registry.host(),
                                         credentials));
  const std::string url = "oci://" + registry.host();
  const absl::Status read = Read(*Open(url, "authFile: " + folder_ / "auth.json"));
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_TRUE(absl::IsUnauthenticated(Read(*Open(url, "maxConnections: 1"))));
}

TEST_F(RegistrySettings, MirrorsAreReadFirst) {
  const PlayedRegistry origin;
  const PlayedRegistry mirror;
  const auto store =
      Open("oci://" + origin.host() + "/base", "mirrors: [\"" + mirror.host() + "/copy\"]");
  const absl::Status read = Read(*store);
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_THAT(mirror.asked(), Contains(HasSubstr("/v2/copy/team/llama/manifests/sha256:")));
  EXPECT_THAT(origin.asked(), IsEmpty());
}

TEST_F(RegistrySettings, ProxyCarriesTheRequests) {
  const fakes::Authority local_ca(folder_.path(), "local");
  const PlayedRegistry registry(Tls(local_ca));
  const fakes::TunnelProxy proxy(registry.port());
  const absl::Status tunnelled =
      Read(*Open("oci://registry.test",
                 fmt::format("caFile: {}, proxy: \"http://{}\"", local_ca.ca(), proxy.address())));
  EXPECT_TRUE(tunnelled.ok()) << tunnelled;
  EXPECT_THAT(proxy.asked(), Contains("CONNECT registry.test:443 HTTP/1.1"));

  const PlayedRegistry plain;
  const absl::Status passed =
      Read(*Open("oci://plain.test",
                 fmt::format("insecure: [plain.test], proxy: \"http://{}\"", plain.host())));
  EXPECT_TRUE(passed.ok()) << passed;
  EXPECT_THAT(plain.asked(), Not(IsEmpty()));
  EXPECT_THAT(plain.asked(), Each(StartsWith("GET http://plain.test")));
}

class MaxConnections : public RegistrySettings, public ::testing::WithParamInterface<int> {};

TEST_P(MaxConnections, MaxConnectionsBoundsDownloads) {
  const PlayedRegistry registry;
  const auto store =
      Open("oci://" + registry.host(), "maxConnections: " + std::to_string(GetParam()));
  std::vector<std::future<absl::Status>> reads;
  for (int i = 0; i < 6; ++i) {
    reads.push_back(std::async(std::launch::async, [&] { return Read(*store); }));
  }
  for (auto& read : reads) {
    const absl::Status status = read.get();
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_GE(registry.most(), 1);
  EXPECT_LE(registry.most(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, MaxConnections, ::testing::Values(1, 2));

TEST_F(RegistrySettings, WithoutMaxConnectionsDownloadsRunBesideEachOther) {
  const PlayedRegistry registry;
  const auto store = Open("oci://" + registry.host(), "maxConnections: 0");
  std::vector<std::future<absl::Status>> reads;
  for (int i = 0; i < 6; ++i) {
    reads.push_back(std::async(std::launch::async, [&] { return Read(*store); }));
  }
  for (auto& read : reads) {
    EXPECT_TRUE(read.get().ok());
  }
  EXPECT_GT(registry.most(), 2);
}

TEST_F(RegistrySettings, BytesPerSecondSlowsDownloads) {
  const PlayedRegistry registry;
  const fakes::FakeClock clock;
  const auto seconds_for = [&](const std::string& setting) {
    const auto store = Open("oci://" + registry.host(), setting, clock);
    CountingBytes sink;
    const MonoTime begin = clock.Monotonic();
    auto reading = std::async(std::launch::async, [&] {
      return store->ReadBlob(
          kRepository, {.digest = DigestOf(std::string(kBlobBytes, 'x')), .bytes = kBlobBytes},
          sink, {});
    });
    while (reading.wait_for(std::chrono::milliseconds(300)) != std::future_status::ready) {
      const_cast<fakes::FakeClock&>(clock).Advance(Duration(500));
    }
    const absl::Status read = reading.get();
    EXPECT_TRUE(read.ok()) << read;
    EXPECT_EQ(sink.count, kBlobBytes);
    return std::chrono::duration<double>(clock.Monotonic() - begin).count();
  };
  EXPECT_GE(seconds_for("bytesPerSecond: 65536"), 2.5) << "256 KiB, 64 KiB of them at once";
  EXPECT_LT(seconds_for("bytesPerSecond: 0"), 2);
}

}  // namespace
}  // namespace cachewarm::agent
