// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/webhook/handler.h"

#include <utility>

#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "operator/admission/webhook/review.h"

namespace cachewarm::webhook {
namespace {

http::ServerResponse Answer(const HandlerMeans& means, const http::ServerRequest& request) {
  if (request.method != "POST") {
    return {.status = 405, .headers = {{"Allow", "POST"}}, .body = "only POST\n"};
  }
  const auto review = DecodeReview(request.body);
  if (!review.ok()) {
    means.metrics.webhook_requests.Add({"refused"});
    return {.status = 400, .body = Message(review.status()) + "\n"};
  }
  codec::Json pod = *review->pod;
  const std::string taken = Inject(means.warmups(review->ns), means.root, pod);
  means.metrics.webhook_requests.Add({taken.empty() ? "passed" : "injected"});
  return {.content_type = "application/json", .body = EncodeAnswer(*review, pod)};
}

}  // namespace

http::Handler MakeHandler(HandlerMeans means) {
  return [means = std::move(means)](const http::ServerRequest& request) {
    const MonoTime begin = means.clock.Monotonic();
    http::ServerResponse response = Answer(means, request);
    means.metrics.webhook_seconds.Observe(
        {}, std::chrono::duration<double>(means.clock.Monotonic() - begin).count());
    return response;
  };
}

}  // namespace cachewarm::webhook
