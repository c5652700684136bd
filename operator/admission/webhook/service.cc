// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/webhook/service.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "operator/admission/webhook/review.h"

namespace cachewarm::webhook {
namespace {

constexpr Duration kLookEvery = std::chrono::seconds(30);
// No endpoint of the webhook until then: nothing was found yet, or the leader made no certificate.
constexpr Duration kLookSoon = std::chrono::seconds(2);
constexpr size_t kHeaderBytesMax = 16U << 10U;
// An API server has one for each question that is not answered yet, and keeps 25 of them.
constexpr int kConnectionsMax = 256;
// API servers give up idle connections after 90 s. Whoever does so second loses no question.
constexpr Duration kIdleTimeout = std::chrono::seconds(120);

std::string WhyMissing(const Installed& installed) {
  if (installed.policy || installed.webhook.has_value()) {
    return "";
  }
  return installed.policy_served
             ? "the admission policy cachewarm.io is not installed, so pods start without us: "
               "apply "
               "manifests/install.yaml"
             : "this API server has no admission policies (Kubernetes before 1.36) and the webhook "
               "is not installed, so pods start without us: apply manifests/install-webhook.yaml";
}

std::string By(const Installed& installed) {
  if (installed.policy) {
    return installed.webhook.has_value() ? "policy and webhook" : "policy";
  }
  return installed.webhook.has_value() ? "webhook" : "nothing";
}

}  // namespace

Service::Service(ServiceOptions options, ServiceMeans means)
    : options_(std::move(options)),
      means_(std::move(means)),
      identity_(std::make_shared<http::ServerIdentity>()) {}

void Service::Run(std::stop_token stop) {
  std::string last;
  while (!stop.stop_requested()) {
    const absl::Status looked = Look(stop);
    const std::string trouble = looked.ok() || absl::IsCancelled(looked) ? "" : Message(looked);
    if (!trouble.empty() && trouble != last) {
      means_.log.Warning("admission cannot be looked after", {{"error", trouble}});
    }
    last = trouble;
    std::unique_lock lock(mutex_);
    const MonoTime next = means_.clock.Monotonic() + (settled_ ? kLookEvery : kLookSoon);
    while (!again_ && !stop.stop_requested() && means_.clock.Monotonic() < next) {
      means_.clock.WaitUntil(lock, wake_, next, stop);
    }
    again_ = false;
  }
  SayGoodbye();
  StopServing();
}

void Service::SetLeading(bool leading) {
  std::lock_guard lock(mutex_);
  leading_ = leading;
  again_ = true;
  wake_.notify_all();
}

std::string Service::Missing() const {
  std::lock_guard lock(mutex_);
  return missing_;
}

absl::Status Service::Look(std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Installed installed, FindInstalled(means_.client, stop));
  Note(installed);
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

void Service::Note(const Installed& installed) {
  means_.metrics.admission.Set({"policy"}, installed.policy ? 1 : 0);
  means_.metrics.admission.Set({"webhook"}, installed.webhook.has_value() ? 1 : 0);
  const std::string by = By(installed);
  bool changed = false;
  {
    std::lock_guard lock(mutex_);
    std::string missing = WhyMissing(installed);
    changed = missing != missing_;
    missing_ = std::move(missing);
    if (by == by_ && !changed) {
      return;
    }
    by_ = by;
  }
  if (WhyMissing(installed).empty()) {
    means_.log.Info("pods are injected", {{"by", by}});
  } else {
    means_.log.Warning("pods are not injected", {{"reason", WhyMissing(installed)}});
  }
  if (changed && means_.on_change) {
    means_.on_change();
  }
}

absl::Status Service::Serve(const Installed& installed, std::stop_token stop) {
  const Registration& registration = *installed.webhook;
  CW_ASSIGN_OR_RETURN(const StoredRing stored, ReadRing(means_.client, options_.ns, stop));
  bool keeps = false;
  {
    std::lock_guard lock(mutex_);
    keeps = leading_ && !installed.policy && !registration.by_cert_manager;
  }
  KeyRing ring = stored.ring;
  if (keeps) {
    CW_ASSIGN_OR_RETURN(ring, Keep(registration, stored, stop));
  }
  return ring.certificate.empty() ? absl::OkStatus() : Show(ring);
}

absl::StatusOr<KeyRing> Service::Keep(const Registration& registration, const StoredRing& stored,
                                      std::stop_token stop) {
  const std::vector<std::string>& announced = registration.authorities;
  CW_ASSIGN_OR_RETURN(
      const std::optional<KeyRing> renewed,
      Renew(stored.ring, {.now = means_.clock.Now(),
                          .dns_name = fmt::format("{}.{}.svc", kWebhookName, options_.ns),
                          .announced = announced.empty() ? "" : announced.front()}));
  if (renewed.has_value()) {
    CW_RETURN_IF_ERROR(WriteRing(means_.client, stored, *renewed, stop));
    means_.log.Info("certificates of the webhook renewed", {{"secret", kWebhookName}});
  }
  KeyRing ring = renewed.value_or(stored.ring);
  const bool told = std::all_of(announced.begin(), announced.end(),
                                [&](const auto& each) { return each == ring.authorities; });
  if (!told) {
    CW_RETURN_IF_ERROR(Announce(means_.client, registration, ring.authorities, stop));
    means_.log.Info("authority of the webhook announced", {{"configuration", kAdmissionName}});
  }
  return ring;
}

absl::Status Service::Show(const KeyRing& ring) {
  if (ring.certificate != shown_.certificate || ring.key != shown_.key) {
    CW_RETURN_IF_ERROR(identity_->Use(ring.certificate, ring.key));
    shown_ = ring;
  }
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
                                 {{std::string(kPath), MakeHandler({.warmups = means_.warmups,
                                                                    .root = options_.root,
                                                                    .clock = means_.clock,
                                                                    .metrics = means_.metrics})}}));
  port_ = server_->port();
  means_.log.Info("webhook served", {{"listen", options_.listen_address},
                                     {"port", static_cast<int64_t>(server_->port())}});
  return absl::OkStatus();
}

void Service::SayGoodbye() {
  if (server_ != nullptr) {
    server_->Drain();
    SleepFor(means_.clock, options_.goodbye, {});
  }
}

void Service::StopServing() {
  if (server_ != nullptr) {
    port_ = 0;
    server_.reset();
    means_.log.Info("webhook no longer served");
  }
}

}  // namespace cachewarm::webhook
