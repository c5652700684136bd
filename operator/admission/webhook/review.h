// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/codec/json_fwd.h"

// The question and the answer of a mutating webhook (admission.k8s.io/v1). Pure.
namespace cachewarm::webhook {

// The most that a question may hold; a pod of more is left alone. etcd takes no object of more than
// 1.5 MiB (its --max-request-bytes), which are somewhat more as JSON.
inline constexpr size_t kReviewBytesMax = 2U << 20U;
inline constexpr size_t kReviewValuesMax = 128U << 10U;

// A pod that is about to be created.
struct Review {
  std::string uid;  // of the question, for the answer
  std::string ns;   // where; a DNS label
  std::shared_ptr<const codec::Json> pod;
};

// Any bytes may be given. INVALID_ARGUMENT names the field that is not as an API server writes it.
absl::StatusOr<Review> DecodeReview(std::string_view body);

// "Allowed", with the JSON patch that makes `changed` of the pod asked about; without a patch when
// both are equal. There is no way to say no.
std::string EncodeAnswer(const Review& review, const codec::Json& changed);

}  // namespace cachewarm::webhook
