// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/kube/backend.h"

#include <cstdlib>

#include "fmt/format.h"
#include "lib/base/random.h"
#include "lib/kube/client/http_client.h"
#include "lib/kube/kubeconfig/selection.h"
#include "tests/fakes/fake_api_server.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

std::string KubeconfigPath() {
  const char* path = std::getenv("CACHEWARM_TEST_KUBECONFIG");
  return path == nullptr ? "" : path;
}

}  // namespace

std::vector<std::string> Backends() {
  return KubeconfigPath().empty() ? std::vector<std::string>{"fake"}
                                  : std::vector<std::string>{"fake", "real"};
}

void KubeContract::SetUp() {
  ns_ = fmt::format("contract-{:08x}", static_cast<uint32_t>(SystemRandom()() * 4294967295.0));
  if (is_fake()) {
    client_ = std::make_unique<fakes::FakeApiServer>(SystemClock());
  } else {
    OpenReal();
    ASSERT_NE(client_, nullptr);
  }
  Do(Create(kNamespaces, {{"metadata", {{"name", ns_}}}}, {}));
}

void KubeContract::OpenReal() {
  const auto config = FindConfig(KubeconfigPath(), {});
  ASSERT_TRUE(config.ok()) << config.status();
  auto http = http::MakeClient({.tls = config->tls});
  ASSERT_TRUE(http.ok()) << http.status();
  http_ = *std::move(http);
  client_ = MakeHttpClient(*http_, SystemClock(), SystemRandom(), {.config = *config});
}

void KubeContract::TearDown() {
  if (client_ == nullptr) {
    return;
  }
  client_->Do(Delete(kNamespaces, {.ns = "", .name = ns_}, {}), {}).IgnoreError();
}

Json KubeContract::Do(const Request& request) {
  absl::StatusOr<Json> answer = client_->Do(request, {});
  EXPECT_TRUE(answer.ok()) << request.verb << " " << request.path << ": " << answer.status();
  return answer.value_or(Json::object());
}

absl::Status KubeContract::Fails(const Request& request) {
  const absl::StatusOr<Json> answer = client_->Do(request, {});
  EXPECT_FALSE(answer.ok()) << request.verb << " " << request.path;
  return answer.status();
}

Json KubeContract::Named(const std::string& name) const {
  return {{"name", name}, {"namespace", ns_}};
}

Json KubeContract::Lease(const std::string& name, const std::string& holder) const {
  return {{"metadata", Named(name)}, {"spec", {{"holderIdentity", holder}}}};
}

Json KubeContract::Deployment(const std::string& name) const {
  return {{"metadata", Named(name)},
          {"spec",
           {{"replicas", 0},
            {"paused", true},
            {"selector", {{"matchLabels", {{"app", name}}}}},
            {"template",
             {{"metadata", {{"labels", {{"app", name}}}}},
              {"spec", {{"containers", Json::array({{{"name", "c"}, {"image", "i:1"}}})}}}}}}}};
}

}  // namespace cachewarm::kube
