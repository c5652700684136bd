// SPDX-License-Identifier: Apache-2.0
#include "operator/webhook/handler.h"

#include <utility>

#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "operator/webhook/review.h"

namespace cachewarm::webhook {
namespace {

http::ServerResponse Answer(const HandlerDependencies& deps, const http::ServerRequest& request) {
  if (request.method != "POST") {
    return {
        .status = 405, .headers = {{"Allow", "POST"}}, .body = "method not allowed; use POST\n"};
  }
  const auto review = DecodeReview(request.body);
  if (!review.ok()) {
    deps.metrics.webhook_requests.Add({"refused"});
    return {.status = 400, .body = Message(review.status()) + "\n"};
  }
  codec::Json pod = *review->pod;
  const std::string warmup = Inject(deps.warmups(review->ns), deps.root, pod);
  deps.metrics.webhook_requests.Add({warmup.empty() ? "passed" : "injected"});
  return {.content_type = "application/json", .body = EncodeAnswer(*review, pod)};
}

}  // namespace

http::Handler MakeHandler(HandlerDependencies deps) {
  return [deps = std::move(deps)](const http::ServerRequest& request) {
    const MonoTime begin = deps.clock.Monotonic();
    http::ServerResponse response = Answer(deps, request);
    deps.metrics.webhook_seconds.Observe(
        {}, std::chrono::duration<double>(deps.clock.Monotonic() - begin).count());
    return response;
  };
}

}  // namespace cachewarm::webhook
