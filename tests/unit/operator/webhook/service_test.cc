// SPDX-License-Identifier: Apache-2.0
#include "operator/webhook/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/base64.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/http/client.h"
#include "lib/pki/certificates.h"
#include "operator/webhook/review.h"
#include "tests/fakes/memory_log.h"
#include "tests/fakes/tunnel_proxy.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::webhook {
namespace {

using codec::Json;
using op::testing::Eventually;
using op::testing::FromYaml;
using ::testing::HasSubstr;

constexpr char kNamespace[] = "cachewarm-system";
constexpr char kUrl[] = "https://cachewarm-webhook.cachewarm-system.svc/pods";
const kube::ObjectName kSecretName{.ns = kNamespace, .name = std::string(kWebhookName)};
const kube::ObjectName kAdmission{.name = std::string(kAdmissionName)};

// The fake API server, which also answers discovery.
class Server final : public kube::Client {
 public:
  explicit Server(const Clock& clock) : objects(clock) {}

  absl::StatusOr<Json> Do(const kube::Request& request, std::stop_token stop) override {
    if (request.path != "/apis/admissionregistration.k8s.io/v1") {
      return objects.Do(request, stop);
    }
    Json resources = Json::array({{{"name", "mutatingwebhookconfigurations"}}});
    if (has_policies) {
      resources.push_back({{"name", "mutatingadmissionpolicies"}});
    }
    return Json{{"kind", "APIResourceList"}, {"resources", resources}};
  }
  absl::Status Watch(const kube::Request& request, const kube::WatchEventHandler& on_event,
                     std::stop_token stop) override {
    return objects.Watch(request, on_event, stop);
  }

  fakes::FakeApiServer objects;
  std::atomic<bool> has_policies = false;
};

class ServiceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { http::PrepareProcess(); }

  explicit ServiceTest(Duration drain_delay = {})
      : metrics(op::MakeMetrics(*registry, "1")),
        service({.ns = kNamespace,
                 .root = "/root",
                 .listen_address = "127.0.0.1",
                 .listen_port = 0,
                 .drain_delay = drain_delay},
                {.client = server,
                 .clock = clock,
                 .log = log,
                 .metrics = metrics,
                 .warmups = [this](std::string_view ns) { return WarmupsIn(ns); },
                 .on_change = [this] { ++changes; }}) {}

  void InstallWebhook(const std::string& annotation = "") {
    Json configuration = FromYaml(R"(
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: cachewarm.io}
webhooks:
- {name: pods.cachewarm.io, clientConfig: {service: {name: cachewarm-webhook, namespace: s}}}
)");
    if (!annotation.empty()) {
      configuration["metadata"]["annotations"] = {{annotation, "x"}};
    }
    server.objects.Put(kube::kMutatingWebhooks, configuration);
    server.objects.Put(kube::kSecrets, FromYaml(R"(
apiVersion: v1
kind: Secret
metadata: {name: cachewarm-webhook, namespace: cachewarm-system, labels: {kept: "yes"}}
)"));
  }

  void InstallPolicy() {
    server.has_policies = true;
    for (const kube::Resource& resource :
         {kube::kMutatingPolicies, kube::kMutatingPolicyBindings}) {
      server.objects.Put(resource, {{"apiVersion", resource.ApiVersion()},
                                    {"kind", std::string(resource.kind)},
                                    {"metadata", {{"name", "cachewarm.io"}}}});
    }
  }

  void Start() {
    thread = std::jthread([this](std::stop_token stop) { service.Run(stop); });
  }
  // Advances the clock so that the service checks again; returns after the check.
  void Later(Duration by) {
    EXPECT_TRUE(clock.AwaitWaiters(1));
    clock.Advance(by);
    EXPECT_TRUE(clock.AwaitWaiters(1));
  }

  std::string Entry(const char* name) {
    const auto secret = server.objects.Find(kube::kSecrets, kSecretName);
    return codec::DecodeBase64(codec::TextAt(*secret, {"data", name})).value_or("");
  }
  std::string CaBundle() {
    const auto object = server.objects.Find(kube::kMutatingWebhooks, kAdmission);
    return codec::DecodeBase64(
               codec::TextAt((*object)["webhooks"][0], {"clientConfig", "caBundle"}))
        .value_or("");
  }

  absl::StatusOr<http::Response> Send(const std::string& trusted, const std::string& body,
                                      http::Method method = http::Method::kPost) {
    const fakes::TunnelProxy proxy(service.port());
    const auto client = http::MakeClient(
        {.tls = {.ca_pem = trusted}, .proxy = {.https = "http://" + proxy.address()}});
    return (*client)->Send({.method = method, .url = kUrl, .body = body}, {});
  }

  double Mode(const std::string& mode) const {
    return op::testing::SeriesValue(registry->Serialize(),
                                    "cachewarm_admission_mode_info{mode=\"" + mode + "\"}");
  }

  std::vector<Warmup> WarmupsIn(std::string_view ns) {
    auto warmup = std::make_shared<api::CacheWarmup>();
    warmup->ns = std::string(ns);
    warmup->name = "llama";
    warmup->uid = "u-1";
    warmup->labels[std::string(api::kInjectLabel)] = "true";
    warmup->status.injection = api::Injection{.labels = {{"app", "llama"}}, .container = "c"};
    return ns == "serving" ? std::vector<Warmup>{warmup} : std::vector<Warmup>{};
  }

  static std::string ReviewOf(const std::string& ns) {
    return Json({{"apiVersion", "admission.k8s.io/v1"},
                 {"kind", "AdmissionReview"},
                 {"request",
                  {{"uid", "q-1"},
                   {"resource", {{"group", ""}, {"version", "v1"}, {"resource", "pods"}}},
                   {"namespace", ns},
                   {"operation", "CREATE"},
                   {"object",
                    {{"metadata", {{"labels", {{"app", "llama"}}}}},
                     {"spec", {{"containers", Json::array({{{"name", "c"}}})}}}}}}}})
        .dump();
  }

  fakes::FakeClock clock{SystemClock().Now()};
  Server server{clock};
  fakes::MemoryLog log;
  std::unique_ptr<metrics::Registry> registry = metrics::MakeRegistry();
  op::Metrics metrics;
  std::atomic<int> changes = 0;
  Service service;
  std::jthread thread;
};

TEST_F(ServiceTest, LeaderIssuesCertificatesUpdatesCaBundleAndServes) {
  InstallWebhook();
  service.SetLeading(true);
  Start();
  ASSERT_TRUE(Eventually([&] { return service.port() != 0; }));
  EXPECT_EQ(CaBundle(), Entry("ca.crt"));
  const auto secret = server.objects.Find(kube::kSecrets, kSecretName);
  EXPECT_EQ(kube::LabelsOf(*secret).at("kept"), "yes");
  const auto answer = Send(CaBundle(), ReviewOf("serving"));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  const Json response = (*codec::ParseJson(answer->body))["response"];
  EXPECT_EQ(response["uid"], "q-1");
  EXPECT_THAT(*codec::DecodeBase64(response["patch"].get<std::string>()),
              HasSubstr("/root/serving/llama/u-1/image"));
  EXPECT_THAT(registry->Serialize(),
              HasSubstr("cachewarm_admission_mode_info{mode=\"webhook\"} 1"));
  EXPECT_THAT(registry->Serialize(),
              HasSubstr("cachewarm_webhook_requests_total{result=\"injected\"} 1"));
  const std::string expiry = "cachewarm_webhook_certificate_expiry_timestamp_seconds";
  const std::chrono::duration<double> in_90_days =
      clock.Now().time_since_epoch() + std::chrono::hours(24 * 90);
  EXPECT_NEAR(op::testing::SeriesValue(registry->Serialize(), expiry), in_90_days.count(), 1);
}

TEST_F(ServiceTest, InvalidReviewIsRejectedAndCounted) {
  InstallWebhook();
  service.SetLeading(true);
  Start();
  ASSERT_TRUE(Eventually([&] { return service.port() != 0; }));
  EXPECT_EQ(Send(CaBundle(), "", http::Method::kGet)->status, 405);
  const auto bad = Send(CaBundle(), "{}");
  EXPECT_EQ(bad->status, 400);
  EXPECT_THAT(bad->body, HasSubstr("apiVersion"));
  const auto large = Send(CaBundle(), std::string(kReviewBytesMax + 1, 'x'));
  EXPECT_TRUE(!large.ok() || large->status == 413) << "rejected before the whole body was sent";
  const auto passed = Send(CaBundle(), ReviewOf("elsewhere"));
  EXPECT_FALSE((*codec::ParseJson(passed->body))["response"].contains("patch"));
  EXPECT_EQ(op::testing::SeriesValue(registry->Serialize(),
                                     "cachewarm_webhook_requests_total{result=\"refused\"}"),
            1);
}

TEST_F(ServiceTest, StandbyServesLeadersCertificatesAndWritesNothing) {
  InstallWebhook();
  Start();
  Later(std::chrono::seconds(31));
  EXPECT_EQ(service.port(), 0);
  const CertificateBundle ring =
      **Renew({}, {.now = clock.Now(), .dns_name = "cachewarm-webhook.cachewarm-system.svc"});
  server.objects.Edit(kube::kSecrets, kSecretName, [&](Json& secret) {
    secret["data"] = {{"tls.crt", codec::EncodeBase64(ring.certificate)},
                      {"tls.key", codec::EncodeBase64(ring.key)}};
  });
  ASSERT_TRUE(Eventually([&] {
    Later(std::chrono::seconds(31));
    return service.port() != 0;
  }));
  EXPECT_TRUE(Send(ring.authorities, ReviewOf("serving")).ok());
  EXPECT_EQ(CaBundle(), "");
  EXPECT_EQ(Entry("ca.crt"), "");
}

TEST_F(ServiceTest, RenewedCertificateIsServedWithoutRestart) {
  InstallWebhook();
  service.SetLeading(true);
  Start();
  ASSERT_TRUE(Eventually([&] { return service.port() != 0; }));
  const uint16_t port = service.port();
  const CertificateBundle other =
      **Renew({}, {.now = clock.Now(), .dns_name = "cachewarm-webhook.cachewarm-system.svc"});
  server.objects.Edit(kube::kSecrets, kSecretName, [&](Json& secret) {
    secret["data"] = {{"ca.crt", codec::EncodeBase64(other.authorities)},
                      {"ca.key", codec::EncodeBase64(other.authority_key)},
                      {"tls.crt", codec::EncodeBase64(other.certificate)},
                      {"tls.key", codec::EncodeBase64(other.key)}};
  });
  ASSERT_TRUE(Eventually([&] {
    Later(std::chrono::seconds(31));
    return Send(other.authorities, ReviewOf("serving")).ok();
  }));
  EXPECT_EQ(service.port(), port);
  EXPECT_TRUE(Eventually([&] { return CaBundle() == other.authorities; }));
}

TEST_F(ServiceTest, RemovedCaBundleIsWrittenAgain) {
  InstallWebhook();
  service.SetLeading(true);
  Start();
  ASSERT_TRUE(Eventually([&] { return service.port() != 0; }));
  server.objects.Edit(kube::kMutatingWebhooks, kAdmission, [](Json& object) {
    object["webhooks"][0]["clientConfig"].erase("caBundle");
  });
  EXPECT_TRUE(Eventually([&] {
    Later(std::chrono::seconds(31));
    return CaBundle() == Entry("ca.crt");
  }));
}

TEST_F(ServiceTest, CertManagersConfigurationAndSecretAreNotWritten) {
  InstallWebhook("cert-manager.io/inject-ca-from");
  service.SetLeading(true);
  Start();
  ASSERT_TRUE(Eventually(
      [&] { return registry->Serialize().find("mode=\"webhook\"} 1") != std::string::npos; }));
  Later(std::chrono::seconds(31));
  EXPECT_EQ(Entry("tls.crt"), "");
  EXPECT_EQ(CaBundle(), "");
}

TEST_F(ServiceTest, InstalledPolicyKeepsCaBundleUnchanged) {
  InstallPolicy();
  InstallWebhook();
  service.SetLeading(true);
  Start();
  ASSERT_TRUE(Eventually([&] { return log.Has("policy and webhook"); }));
  Later(std::chrono::seconds(31));
  EXPECT_EQ(CaBundle(), "");
  EXPECT_EQ(Entry("tls.crt"), "");
  EXPECT_EQ(service.Missing(), "");
  EXPECT_EQ(Mode("policy"), 1);
  EXPECT_EQ(Mode("webhook"), 1);
}

TEST_F(ServiceTest, PolicyAloneServesNothingAndReadsNoSecret) {
  InstallPolicy();
  service.SetLeading(true);
  Start();
  ASSERT_TRUE(Eventually([&] { return log.Has("new pods are injected"); }));
  EXPECT_EQ(service.port(), 0);
  EXPECT_EQ(Mode("policy"), 1);
  EXPECT_EQ(Mode("webhook"), 0);
  for (const std::string& request : server.objects.Requests()) {
    EXPECT_EQ(request.find("secrets"), std::string::npos) << request;
  }
}

TEST_F(ServiceTest, MissingNamesTheManifestToInstall) {
  Start();
  ASSERT_TRUE(Eventually([&] { return changes == 1; }));
  EXPECT_THAT(service.Missing(), HasSubstr("install-webhook.yaml"));
  EXPECT_TRUE(log.Has("new pods are not injected"));
  server.has_policies = true;
  EXPECT_TRUE(Eventually([&] {
    Later(std::chrono::seconds(31));
    return service.Missing().find("manifests/install.yaml") != std::string::npos;
  }));
  InstallPolicy();
  EXPECT_TRUE(Eventually([&] {
    Later(std::chrono::seconds(31));
    return service.Missing().empty();
  }));
}

TEST_F(ServiceTest, StopsServingWhenTheWebhookIsRemoved) {
  InstallWebhook();
  service.SetLeading(true);
  Start();
  ASSERT_TRUE(Eventually([&] { return service.port() != 0; }));
  server.objects.Remove(kube::kMutatingWebhooks, kAdmission);
  EXPECT_TRUE(Eventually([&] {
    Later(std::chrono::seconds(31));
    return service.port() == 0 &&
           op::testing::SeriesValue(registry->Serialize(),
                                    "cachewarm_webhook_certificate_expiry_timestamp_seconds") == 0;
  }));
}

TEST_F(ServiceTest, IsSettledOnceItServesAndStaysSo) {
  InstallWebhook();
  Start();
  ASSERT_TRUE(Eventually([&] { return log.Has("new pods are injected"); }));
  EXPECT_FALSE(service.IsSettled()) << "no certificate has been issued yet";
  service.SetLeading(true);
  ASSERT_TRUE(Eventually([&] { return service.IsSettled(); }));
  EXPECT_NE(service.port(), 0);
  server.objects.Intercept([](const kube::Request&) { return absl::UnavailableError("away"); });
  Later(std::chrono::seconds(31));
  EXPECT_TRUE(log.Has("away"));
  EXPECT_TRUE(service.IsSettled());
}

TEST_F(ServiceTest, UnsettledServiceChecksEveryTwoSeconds) {
  server.objects.Intercept([](const kube::Request&) { return absl::UnavailableError("away"); });
  Start();
  ASSERT_TRUE(Eventually([&] { return log.Has("away"); }));
  EXPECT_FALSE(service.IsSettled());
  server.objects.Intercept(nullptr);
  Later(std::chrono::seconds(2));
  EXPECT_TRUE(service.IsSettled()) << "no webhook is installed";
}

TEST_F(ServiceTest, InstalledPolicySettlesWithoutCertificate) {
  InstallPolicy();
  InstallWebhook();
  Start();
  EXPECT_TRUE(Eventually([&] { return service.IsSettled(); }));
  EXPECT_EQ(service.port(), 0);
}

class DrainingService : public ServiceTest {
 protected:
  DrainingService() : ServiceTest(std::chrono::seconds(3)) {}
};

TEST_F(DrainingService, KeepsAnsweringDuringDrainDelay) {
  InstallWebhook();
  service.SetLeading(true);
  Start();
  ASSERT_TRUE(Eventually([&] { return service.port() != 0; }));
  const uint16_t port = service.port();
  thread.request_stop();
  const auto answer_ends_connection = [&] {
    const auto answer = Send(CaBundle(), ReviewOf("serving"));
    return answer.ok() && answer->status == 200 && answer->headers.Find("Connection") == "close";
  };
  EXPECT_TRUE(Eventually(answer_ends_connection));
  EXPECT_EQ(service.port(), port);
  ASSERT_TRUE(Eventually([&] {
    clock.Advance(std::chrono::seconds(1));
    return service.port() == 0;
  }));
  thread.join();
  EXPECT_TRUE(log.Has("webhook stopped"));
}

TEST_F(DrainingService, StopsAtOnceWithoutServing) {
  InstallPolicy();
  Start();
  ASSERT_TRUE(Eventually([&] { return service.IsSettled(); }));
  thread.request_stop();
  thread.join();
}

TEST_F(ServiceTest, MissingSecretIsLoggedWithRemedy) {
  InstallWebhook();
  server.objects.Remove(kube::kSecrets, kSecretName);
  service.SetLeading(true);
  Start();
  EXPECT_TRUE(Eventually([&] { return log.Has("apply manifests/install-webhook.yaml again"); }));
  EXPECT_EQ(service.port(), 0);
}

TEST_F(ServiceTest, UnreachableApiServerChangesNothing) {
  InstallWebhook();
  service.SetLeading(true);
  Start();
  ASSERT_TRUE(Eventually([&] { return service.port() != 0; }));
  server.objects.Intercept([](const kube::Request&) { return absl::UnavailableError("away"); });
  EXPECT_TRUE(Eventually([&] {
    Later(std::chrono::seconds(31));
    return log.Has("away");
  }));
  EXPECT_NE(service.port(), 0);
  EXPECT_EQ(service.Missing(), "");
}

}  // namespace
}  // namespace cachewarm::webhook
