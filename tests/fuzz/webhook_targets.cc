// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "lib/api/names.h"
#include "lib/codec/base64.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/webhook/pod_injection.h"
#include "operator/webhook/review.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {

// Input: an AdmissionReview, whose pod is matched by a warmup for every pod with a container "c".
void AdmissionReview(std::string_view bytes) {
  const auto review = webhook::DecodeReview(bytes);
  if (!review.ok()) {
    return;
  }
  auto warmup = std::make_shared<api::CacheWarmup>();
  warmup->ns = review->ns;
  warmup->name = "llama";
  warmup->uid = "u-1";
  warmup->labels[std::string(api::kInjectLabel)] = "true";
  warmup->status.injection =
      api::Injection{.container = "c", .env = {{.name = "A", .value = "1"}}, .gate = true};
  codec::Json changed = *review->pod;
  const std::string taken = webhook::Inject({warmup}, api::kDefaultRoot, changed);
  Require(!taken.empty() || changed == *review->pod, "an unmatched pod is unchanged");
  codec::Json again = changed;
  webhook::Inject({warmup}, api::kDefaultRoot, again);
  Require(again == changed, "the change is idempotent");
  const auto answer = codec::ParseJson(webhook::EncodeAnswer(*review, changed));
  Require(answer.ok(), "an answer is JSON");
  const codec::Json& response = (*answer)["response"];
  if (response.contains("patch")) {
    const auto patch = codec::DecodeBase64(response["patch"].get<std::string>());
    Require(patch.ok() && review->pod->patch(*codec::ParseJson(*patch)) == changed,
            "the patch results in the changed pod");
  }
}

}  // namespace cachewarm::fuzz
