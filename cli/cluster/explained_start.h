// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/api/cache_warmup.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::cli {

// A first start of a pod, with its explanation. Texts have no control characters.
struct StartExplanation {
  std::string ns;
  std::string pod;
  std::string warmup;  // empty: the pod is not injected
  std::string result;  // as in metric labels; empty: the start is not counted yet
  double start_seconds = 0;
  double saved_seconds = 0;
  std::string text;  // sentences for users; never empty
};

// Explains the start of a pod, from the annotation that the operator writes. Pure.
// INVALID_ARGUMENT if the annotation is not the operator's.
absl::StatusOr<StartExplanation> ExplainPod(const codec::Json& pod);

// Explains the last start of the warmup that compiled although a bundle could have been used (cold,
// partial, miss, inert or hollow). NOT_FOUND if no recent start did. Pure.
absl::StatusOr<StartExplanation> ExplainLastMiss(const api::CacheWarmup& warmup);

}  // namespace cachewarm::cli
