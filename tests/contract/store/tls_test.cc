// SPDX-License-Identifier: Apache-2.0
// A real registry with TLS and client certificates, behind a real proxy.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/store/open.h"
#include "lib/bundle/transfer.h"
#include "lib/http/client.h"
#include "tests/contract/store/registry_process.h"
#include "tests/fakes/authority.h"
#include "tests/fakes/tunnel_proxy.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RegistryWithTls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (RegistryProcess::Program().empty()) {
      GTEST_SKIP() << "CACHEWARM_REGISTRY_BIN is not set";
    }
    http::PrepareProcess();
    const std::string leaf = trusted_.Issue("registry", "DNS:registry.test,IP:127.0.0.1");
    registry_ = std::make_unique<RegistryProcess>(
        RegistrySettings{.tls = {.certificate_file = leaf + ".crt",
                                 .key_file = leaf + ".key",
                                 .client_ca_file = trusted_.ca()}});
  }

  // Publishes and verifies a bundle.
  absl::Status Use(const StoreOptions& options) {
    CW_ASSIGN_OR_RETURN(const auto store, OpenStore(options, SystemClock()));
    CW_RETURN_IF_ERROR(store->Ping({}));
    const RepositoryRef place{*store, "team/llama"};
    CW_ASSIGN_OR_RETURN(const Publication published,
                        Publish(place, FilesOf(SampleTree()), SampleFacts(), {.tag = "k-1"}, {}));
    CW_ASSIGN_OR_RETURN(const Bundle bundle, ReadBundle(place, published.digest, {}));
    return Verify(place, bundle, {}, {});
  }

  StoreOptions Options(const std::string& host) {
    return {.url = "oci://" + host + "/base",
            .ca_file = trusted_.ca(),
            .certificate_file = client_ + ".crt",
            .key_file = client_ + ".key"};
  }

  TempDir folder_;
  fakes::Authority trusted_{folder_.path(), "trusted"};
  fakes::Authority other_{folder_.path(), "other"};
  std::string client_ = trusted_.Issue("client", "DNS:client");
  std::unique_ptr<RegistryProcess> registry_;
};

TEST_F(RegistryWithTls, RequiresClientCertificate) {
  const absl::Status shown = Use(Options(registry_->address()));
  EXPECT_TRUE(shown.ok()) << shown;
  StoreOptions anonymous = Options(registry_->address());
  anonymous.certificate_file = anonymous.key_file = "";
  EXPECT_TRUE(IsRetryable(Use(anonymous))) << Use(anonymous);
  StoreOptions untrusted = Options(registry_->address());
  const std::string leaf = other_.Issue("client", "DNS:client");
  untrusted.certificate_file = leaf + ".crt";
  untrusted.key_file = leaf + ".key";
  EXPECT_FALSE(Use(untrusted).ok());
}

TEST_F(RegistryWithTls, IsNotTrustedWithAnotherAuthority) {
  StoreOptions options = Options(registry_->address());
  options.ca_file = other_.ca();
  EXPECT_FALSE(Use(options).ok());
}

TEST_F(RegistryWithTls, IsReachedThroughConnectProxy) {
  const fakes::TunnelProxy proxy(registry_->port());
  StoreOptions options = Options("registry.test");
  options.proxy.https = "http://" + proxy.address();
  const absl::Status used = Use(options);
  EXPECT_TRUE(used.ok()) << used;
  EXPECT_THAT(proxy.asked(), Not(IsEmpty()));
  EXPECT_THAT(proxy.asked(), Each("CONNECT registry.test:443 HTTP/1.1"));
  EXPECT_THAT(proxy.first_bytes(), Each(HasSubstr("\x16\x03"))) << "a TLS handshake";
  EXPECT_THAT(proxy.first_bytes(), Each(Not(HasSubstr("/v2/"))));
}

TEST_F(RegistryWithTls, DetectsProxyToAnotherServer) {
  const std::string leaf = other_.Issue("registry", "DNS:registry.test");
  const RegistryProcess impostor(
      {.tls = {.certificate_file = leaf + ".crt", .key_file = leaf + ".key"}});
  const fakes::TunnelProxy proxy(impostor.port());
  StoreOptions options = Options("registry.test");
  options.proxy.https = proxy.address();
  EXPECT_FALSE(Use(options).ok());
}

}  // namespace
}  // namespace cachewarm::bundle
