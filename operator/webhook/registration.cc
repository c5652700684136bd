// SPDX-License-Identifier: Apache-2.0
#include "operator/webhook/registration.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/base64.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::webhook {
namespace {

using codec::Json;

constexpr char kInjectFrom[] = "cert-manager.io/inject-ca-from";
constexpr std::pair<const char*, std::string CertificateBundle::*> kSecretEntries[] = {
    {"ca.crt", &CertificateBundle::authorities},
    {"ca.key", &CertificateBundle::authority_key},
    {"tls.crt", &CertificateBundle::certificate},
    {"tls.key", &CertificateBundle::key}};

std::string Decoded(const std::string& base64) {
  return codec::DecodeBase64(base64).value_or("");
}

// Reads one object. Returns nullopt if it does not exist.
absl::StatusOr<std::optional<Json>> Find(kube::Client& client, const kube::Resource& resource,
                                         std::stop_token stop) {
  auto object =
      client.Do(kube::Get(resource, {.name = std::string(kAdmissionName)}), std::move(stop));
  if (absl::IsNotFound(object.status())) {
    return std::nullopt;
  }
  CW_RETURN_IF_ERROR(object.status());
  return *std::move(object);
}

absl::StatusOr<bool> ServesPolicies(kube::Client& client, std::stop_token stop) {
  const auto known = client.Do(kube::GetPath("/apis/admissionregistration.k8s.io/v1"), stop);
  CW_RETURN_IF_ERROR(known.status());
  const Json& resources = codec::ListAt(*known, {"resources"});
  return std::any_of(resources.begin(), resources.end(), [](const Json& resource) {
    return codec::TextAt(resource, {"name"}) == kube::kMutatingPolicies.plural;
  });
}

Registration ReadRegistration(const Json& object) {
  Registration out{.by_cert_manager = kube::AnnotationsOf(object).contains(kInjectFrom)};
  for (const Json& webhook : codec::ListAt(object, {"webhooks"})) {
    out.authorities.push_back(Decoded(codec::TextAt(webhook, {"clientConfig", "caBundle"})));
  }
  return out;
}

}  // namespace

absl::StatusOr<Installed> FindInstalled(kube::Client& client, std::stop_token stop) {
  Installed out;
  CW_ASSIGN_OR_RETURN(out.policy_served, ServesPolicies(client, stop));
  if (out.policy_served) {
    CW_ASSIGN_OR_RETURN(const auto policy, Find(client, kube::kMutatingPolicies, stop));
    CW_ASSIGN_OR_RETURN(const auto binding, Find(client, kube::kMutatingPolicyBindings, stop));
    out.policy = policy.has_value() && binding.has_value();
  }
  CW_ASSIGN_OR_RETURN(const auto webhook, Find(client, kube::kMutatingWebhooks, stop));
  if (webhook.has_value()) {
    out.webhook = ReadRegistration(*webhook);
  }
  return out;
}

absl::StatusOr<StoredCertificateBundle> ReadCertificateBundle(kube::Client& client,
                                                              const std::string& ns,
                                                              std::stop_token stop) {
  auto secret =
      client.Do(kube::Get(kube::kSecrets, {.ns = ns, .name = std::string(kWebhookName)}), stop);
  if (absl::IsNotFound(secret.status())) {
    return absl::FailedPreconditionError(
        fmt::format("Secret {}/{} for the webhook certificates does not exist; apply "
                    "manifests/install-webhook.yaml again",
                    ns, kWebhookName));
  }
  CW_RETURN_IF_ERROR(secret.status());
  StoredCertificateBundle stored;
  for (const auto& [entry, member] : kSecretEntries) {
    stored.bundle.*member = Decoded(codec::TextAt(*secret, {"data", entry}));
  }
  stored.secret = std::make_shared<const Json>(*std::move(secret));
  return stored;
}

absl::Status WriteCertificateBundle(kube::Client& client, const StoredCertificateBundle& stored,
                                    const CertificateBundle& bundle, std::stop_token stop) {
  Json secret = *stored.secret;
  if (!secret["data"].is_object()) {
    secret["data"] = Json::object();
  }
  for (const auto& [entry, member] : kSecretEntries) {
    secret["data"][entry] = codec::EncodeBase64(bundle.*member);
  }
  return client
      .Do(kube::Update(kube::kSecrets, secret,
                       {.field_manager = std::string(api::kOperatorManager)}),
          stop)
      .status();
}

absl::Status UpdateCaBundle(kube::Client& client, const Registration& registration,
                            const std::string& authorities, std::stop_token stop) {
  Json operations = Json::array();
  for (size_t i = 0; i < registration.authorities.size(); ++i) {
    operations.push_back({{"op", "add"},
                          {"path", fmt::format("/webhooks/{}/clientConfig/caBundle", i)},
                          {"value", codec::EncodeBase64(authorities)}});
  }
  return client
      .Do(kube::JsonPatch(kube::kMutatingWebhooks, {.name = std::string(kAdmissionName)},
                          operations, {.field_manager = std::string(api::kOperatorManager)}),
          stop)
      .status();
}

}  // namespace cachewarm::webhook
