// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/codec/json_fwd.h"

// Decodes requests and encodes responses of a mutating webhook (admission.k8s.io/v1). Pure.
namespace cachewarm::webhook {

// Limits of a request. A pod that exceeds one of them is not injected. The limit of bytes admits
// every pod that etcd can store: 1.5 MiB (--max-request-bytes), which become somewhat more as JSON.
inline constexpr size_t kReviewBytesMax = 2U << 20U;
inline constexpr size_t kReviewValuesMax = 128U << 10U;

// A review of a pod that is being created.
struct Review {
  std::string uid;  // uid of the request; repeated in the response
  std::string ns;   // namespace; a DNS label
  std::shared_ptr<const codec::Json> pod;
};

// Decodes untrusted bytes. Errors: INVALID_ARGUMENT names the invalid field.
absl::StatusOr<Review> DecodeReview(std::string_view body);

// Encodes the response "allowed" with a JSON patch from the reviewed pod to `changed`; without a
// patch if both are equal. The response never denies the pod.
std::string EncodeAnswer(const Review& review, const codec::Json& changed);

}  // namespace cachewarm::webhook
