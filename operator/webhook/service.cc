// SPDX-License-Identifier: Apache-2.0
#include "operator/webhook/service.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/pki/certificates.h"
#include "operator/webhook/missing_admission.h"
#include "operator/webhook/review.h"

namespace cachewarm::webhook {
namespace {

constexpr Duration kCheckInterval = std::chrono::seconds(30);
// Interval of the checks while Service::IsSettled() is false: no check has succeeded yet, or the
// leader has not issued a certificate.
constexpr Duration kUnsettledCheckInterval = std::chrono::seconds(2);
constexpr size_t kHeaderBytesMax = 16U << 10U;
// Enough for several API servers: each opens one connection per concurrent request and keeps 25
// idle connections.
constexpr int kConnectionsMax = 256;
// API servers close idle connections after 90 s. The webhook waits longer, so that it never closes
// a connection on which an API server is just sending a request.
constexpr Duration kIdleTimeout = std::chrono::seconds(120);

std::string InjectionMode(const Installed& installed) {
  if (installed.policy) {
    return installed.webhook.has_value() ? "policy and webhook" : "policy";
  }
  return installed.webhook.has_value() ? "webhook" : "nothing";
}

}  // namespace

Service::Service(ServiceOptions options, ServiceDependencies deps)
    : options_(std::move(options)),
      deps_(std::move(deps)),
      identity_(std::make_shared<http::ServerIdentity>()) {}

void Service::Run(std::stop_token stop) {
  std::string last;
  while (!stop.stop_requested()) {
    const absl::Status checked = Check(stop);
    const std::string error = checked.ok() || absl::IsCancelled(checked) ? "" : Message(checked);
    if (!error.empty() && error != last) {
      deps_.log.Warning("cannot check the admission configuration", {{"err", error}});
    }
    last = error;
    std::unique_lock lock(mutex_);
    const MonoTime next =
        deps_.clock.Monotonic() + (settled_ ? kCheckInterval : kUnsettledCheckInterval);
    while (!recheck_ && !stop.stop_requested() && deps_.clock.Monotonic() < next) {
      deps_.clock.WaitUntil(lock, wake_, next, stop);
    }
    recheck_ = false;
  }
  Drain();
  StopServing();
}

void Service::SetLeading(bool leading) {
  std::lock_guard lock(mutex_);
  leading_ = leading;
  recheck_ = true;
  wake_.notify_all();
}

std::string Service::Missing() const {
  std::lock_guard lock(mutex_);
  return missing_;
}

absl::Status Service::Check(std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Installed installed, FindInstalled(deps_.client, stop));
  RecordInstalled(installed);
  if (!installed.webhook.has_value()) {
    StopServing();
    settled_ = true;
    return absl::OkStatus();
  }
  CW_RETURN_IF_ERROR(Serve(installed, stop));
  if (installed.policy || server_ != nullptr) {
    settled_ = true;
  }
  return absl::OkStatus();
}

void Service::RecordInstalled(const Installed& installed) {
  deps_.metrics.admission.Set({"policy"}, installed.policy ? 1 : 0);
  deps_.metrics.admission.Set({"webhook"}, installed.webhook.has_value() ? 1 : 0);
  const std::string mode = InjectionMode(installed);
  bool changed = false;
  {
    std::lock_guard lock(mutex_);
    std::string missing = WhyMissing(installed);
    changed = missing != missing_;
    missing_ = std::move(missing);
    if (mode == mode_ && !changed) {
      return;
    }
    mode_ = mode;
  }
  if (WhyMissing(installed).empty()) {
    deps_.log.Info("new pods are injected", {{"mode", mode}});
  } else {
    deps_.log.Warning("new pods are not injected", {{"err", WhyMissing(installed)}});
  }
  if (changed && deps_.on_change) {
    deps_.on_change();
  }
}

absl::Status Service::Serve(const Installed& installed, std::stop_token stop) {
  const Registration& registration = *installed.webhook;
  CW_ASSIGN_OR_RETURN(const StoredCertificateBundle stored,
                      ReadCertificateBundle(deps_.client, options_.ns, stop));
  bool maintains = false;
  {
    std::lock_guard lock(mutex_);
    maintains = leading_ && !installed.policy && !registration.by_cert_manager;
  }
  CertificateBundle bundle = stored.bundle;
  if (maintains) {
    CW_ASSIGN_OR_RETURN(bundle, MaintainCertificates(registration, stored, stop));
  }
  return bundle.certificate.empty() ? absl::OkStatus() : StartServing(bundle);
}

absl::StatusOr<CertificateBundle> Service::MaintainCertificates(
    const Registration& registration, const StoredCertificateBundle& stored, std::stop_token stop) {
  const std::vector<std::string>& ca_bundle = registration.authorities;
  CW_ASSIGN_OR_RETURN(
      const std::optional<CertificateBundle> renewed,
      Renew(stored.bundle, {.now = deps_.clock.Now(),
                            .dns_name = fmt::format("{}.{}.svc", kWebhookName, options_.ns),
                            .ca_bundle = ca_bundle.empty() ? "" : ca_bundle.front()}));
  if (renewed.has_value()) {
    CW_RETURN_IF_ERROR(WriteCertificateBundle(deps_.client, stored, *renewed, stop));
    deps_.log.Info("webhook certificates renewed", {{"secret", kWebhookName}});
  }
  CertificateBundle bundle = renewed.value_or(stored.bundle);
  const bool up_to_date = std::all_of(ca_bundle.begin(), ca_bundle.end(),
                                      [&](const auto& each) { return each == bundle.authorities; });
  if (!up_to_date) {
    CW_RETURN_IF_ERROR(UpdateCaBundle(deps_.client, registration, bundle.authorities, stop));
    deps_.log.Info("caBundle of the webhook updated", {{"webhookConfiguration", kAdmissionName}});
  }
  return bundle;
}

absl::Status Service::StartServing(const CertificateBundle& bundle) {
  if (bundle.certificate != served_.certificate || bundle.key != served_.key) {
    CW_RETURN_IF_ERROR(identity_->Use(bundle.certificate, bundle.key));
    served_ = bundle;
  }
  const auto parsed = pki::ParseCertificates(bundle.certificate);
  deps_.metrics.certificate_expiry.Set(
      {}, parsed.ok()
              ? std::chrono::duration<double>(parsed->front().until.time_since_epoch()).count()
              : 0);
  if (server_ != nullptr) {
    return absl::OkStatus();
  }
  CW_ASSIGN_OR_RETURN(
      server_, http::StartServer({.address = options_.listen_address,
                                  .port = options_.listen_port,
                                  .threads = 2,
                                  .connections_max = kConnectionsMax,
                                  .header_bytes_max = kHeaderBytesMax,
                                  .body_bytes_max = kReviewBytesMax,
                                  .request_timeout = std::chrono::seconds(5),
                                  .idle_timeout = kIdleTimeout,
                                  .identity = identity_},
                                 {{std::string(kPath), MakeHandler({.warmups = deps_.warmups,
                                                                    .root = options_.root,
                                                                    .clock = deps_.clock,
                                                                    .metrics = deps_.metrics})}}));
  port_ = server_->port();
  deps_.log.Info("webhook served", {{"listenAddress", options_.listen_address},
                                    {"port", static_cast<int64_t>(server_->port())}});
  return absl::OkStatus();
}

void Service::Drain() {
  if (server_ != nullptr) {
    server_->Drain();
    SleepFor(deps_.clock, options_.drain_delay, {});
  }
}

void Service::StopServing() {
  if (server_ != nullptr) {
    port_ = 0;
    server_.reset();
    deps_.metrics.certificate_expiry.Set({}, 0);
    deps_.log.Info("webhook stopped");
  }
}

}  // namespace cachewarm::webhook
