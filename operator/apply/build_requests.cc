// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/build_requests.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "lib/base/backoff.h"
#include "lib/base/status.h"
#include "lib/kube/runtime/stop_after.h"

namespace cachewarm::apply {
namespace {

constexpr size_t kAnswerBytesMax = 1U << 20U;
constexpr size_t kExcerptBytes = 256;
// Intervals between retries while the builder's server is unreachable or still loading.
constexpr BackoffPolicy kRetryBackoff{.first = Duration(200), .most = Duration(5'000), .jitter = 0};

std::string Named(const model::DesiredBuildRequests& batch, size_t index) {
  const api::BuildRequest& request = batch.requests[index];
  return fmt::format("request {} of {} ({} {}, port {}) to pod {}", index + 1,
                     batch.requests.size(), request.method, request.path, request.port,
                     batch.pod_name);
}

http::Request ToHttp(const std::string& ip, const api::BuildRequest& request) {
  http::Request message;
  for (const http::Method method : {http::Method::kHead, http::Method::kPost, http::Method::kPut,
                                    http::Method::kPatch, http::Method::kDelete}) {
    if (http::MethodName(method) == request.method) {
      message.method = method;
    }
  }
  const bool is_ipv6 = ip.find(':') != std::string::npos;
  message.url = fmt::format("http://{}{}{}:{}{}", is_ipv6 ? "[" : "", ip, is_ipv6 ? "]" : "",
                            request.port, request.path);
  for (const api::HttpHeader& header : request.headers) {
    message.headers.Set(header.name, header.value);
  }
  message.body = request.body;
  message.inactivity = std::chrono::seconds(request.timeout_seconds);
  message.body_bytes_max = kAnswerBytesMax;
  return message;
}

// Returns the beginning of a response as one line of printable text.
std::string Excerpt(std::string_view text) {
  std::string problem(text.substr(0, kExcerptBytes));
  std::replace_if(
      problem.begin(), problem.end(), [](char c) { return c < ' ' || c > '~'; }, ' ');
  return problem;
}

bool IsExpected(const api::BuildRequest& request, int status) {
  return request.expect_status == 0 ? status >= 200 && status < 300
                                    : status == request.expect_status;
}

bool IsLoading(int status) {
  return status == 429 || status == 503;
}

// Sends one request. Returns OK if the response is the expected one. Retries until the timeout
// while the server is unreachable or still loading.
absl::Status SendOne(http::Client& client, const Clock& clock, const http::Request& message,
                     const api::BuildRequest& request, std::stop_token stop) {
  const kube::StopAfter over(clock, std::chrono::seconds(request.timeout_seconds), stop);
  std::string problem = "no response";
  for (int tries = 0;; ++tries) {
    const absl::StatusOr<http::Response> answer = client.Send(message, over.token());
    if (answer.ok() && IsExpected(request, answer->status)) {
      return absl::OkStatus();
    }
    const bool retryable =
        answer.ok() ? IsLoading(answer->status)
                    : absl::IsUnavailable(answer.status()) || absl::IsCancelled(answer.status());
    if (answer.ok()) {
      problem = fmt::format("response {}: {}", answer->status, Excerpt(answer->body));
    } else if (!absl::IsCancelled(answer.status())) {
      problem = Message(answer.status());
    }
    if (!retryable) {
      return absl::FailedPreconditionError(problem);
    }
    if (!SleepFor(clock, BackoffDelay(kRetryBackoff, tries, 0), over.token())) {
      return stop.stop_requested()
                 ? absl::CancelledError("stopped")
                 : absl::DeadlineExceededError(fmt::format("no expected response within {} s: {}",
                                                           request.timeout_seconds, problem));
    }
  }
}

absl::Status SendAll(http::Client& client, const Clock& clock,
                     const model::DesiredBuildRequests& batch, std::stop_token stop) {
  for (size_t i = 0; i < batch.requests.size(); ++i) {
    const api::BuildRequest& request = batch.requests[i];
    const http::Request message = ToHttp(batch.pod_ip, request);
    for (int repetition = 0; repetition < request.repeat; ++repetition) {
      CW_RETURN_IF_ERROR(Annotate(SendOne(client, clock, message, request, stop), Named(batch, i)));
    }
  }
  return absl::OkStatus();
}

bool IsPodAddress4(uint32_t address) {
  const uint32_t first = address >> 24U;
  return first != 0 && first != 127 && (address >> 16U) != 0xA9FE && first < 224;
}

}  // namespace

bool IsPodAddress(const std::string& ip) {
  in_addr four{};
  if (inet_pton(AF_INET, ip.c_str(), &four) == 1) {
    return IsPodAddress4(ntohl(four.s_addr));
  }
  in6_addr six{};
  if (inet_pton(AF_INET6, ip.c_str(), &six) != 1) {
    return false;
  }
  // IPv4-mapped and IPv4-compatible addresses (::ffff:0:0/96, ::/96) are never pod addresses.
  return IN6_IS_ADDR_LOOPBACK(&six) == 0 && IN6_IS_ADDR_UNSPECIFIED(&six) == 0 &&
         IN6_IS_ADDR_LINKLOCAL(&six) == 0 && IN6_IS_ADDR_MULTICAST(&six) == 0 &&
         IN6_IS_ADDR_V4MAPPED(&six) == 0 && IN6_IS_ADDR_V4COMPAT(&six) == 0;
}

BuildRequests::~BuildRequests() {
  Stop();
}

void BuildRequests::Update(const api::CacheWarmup& warmup,
                           const std::vector<model::DesiredBuildRequests>& desired) {
  std::set<std::string> desired_pods;
  for (const model::DesiredBuildRequests& batch : desired) {
    desired_pods.insert(batch.pod_uid);
  }
  const Sendings over = Extract([&](const std::string& pod_uid, const Sending& sending) {
    return sending.warmup_uid == warmup.uid && !desired_pods.contains(pod_uid);
  });
  std::lock_guard lock(mutex_);
  for (const model::DesiredBuildRequests& batch : desired) {
    std::unique_ptr<Sending>& sending = sendings_[batch.pod_uid];
    if (sending == nullptr) {
      sending = std::make_unique<Sending>();
      sending->warmup = {.ns = warmup.ns, .name = warmup.name};
      sending->warmup_uid = warmup.uid;
      sending->thread =
          std::jthread([this, batch, name = sending->warmup.ToString()](std::stop_token stop) {
            Send(batch, name, std::move(stop));
          });
    }
  }
}

void BuildRequests::StopOthers(const kube::ObjectName& name, const std::string& uid) {
  Extract([&](const std::string&, const Sending& sending) {
    return sending.warmup == name && sending.warmup_uid != uid;
  });
}

BuildRequests::Sendings BuildRequests::Extract(
    const std::function<bool(const std::string&, const Sending&)>& is_over) {
  Sendings over;
  std::lock_guard lock(mutex_);
  for (auto each = sendings_.begin(); each != sendings_.end();) {
    if (is_over(each->first, *each->second)) {
      each->second->thread.request_stop();
      over.insert(sendings_.extract(each++));
    } else {
      ++each;
    }
  }
  return over;
}

void BuildRequests::Send(const model::DesiredBuildRequests& batch, const std::string& warmup,
                         std::stop_token stop) {
  absl::Status status =
      IsPodAddress(batch.pod_ip)
          ? absl::OkStatus()
          : absl::FailedPreconditionError(fmt::format("pod {}: \"{}\" is not a valid pod IP",
                                                      batch.pod_name, Excerpt(batch.pod_ip)));
  if (status.ok()) {
    const auto client = deps_.connect(batch.pod_ip);
    status = client.ok() ? SendAll(**client, deps_.clock, batch, stop) : client.status();
  }
  if (stop.stop_requested()) {
    return;  // the result is not needed any more
  }
  deps_.log.Info("compile requests to builder ended",
                 {{"cacheWarmup", warmup},
                  {"pod", warmup.substr(0, warmup.find('/') + 1) + batch.pod_name},
                  {"ok", status.ok()},
                  {"err", status.ok() ? std::string() : Message(status)}});
  {
    std::lock_guard lock(mutex_);
    const auto own = sendings_.find(batch.pod_uid);
    if (own == sendings_.end()) {
      return;
    }
    own->second->ended = true;
    own->second->status = std::move(status);
  }
  deps_.wake(warmup);
}

std::vector<model::BuildRequestsState> BuildRequests::States(const std::string& warmup_uid) const {
  std::lock_guard lock(mutex_);
  std::vector<model::BuildRequestsState> states;
  for (const auto& [pod_uid, sending] : sendings_) {
    if (sending->warmup_uid == warmup_uid) {
      states.push_back({.pod_uid = pod_uid,
                        .ended = sending->ended,
                        .failure = sending->status.ok() ? "" : Message(sending->status)});
    }
  }
  return states;
}

void BuildRequests::Stop() {
  Extract([](const std::string&, const Sending&) { return true; });
}

}  // namespace cachewarm::apply
