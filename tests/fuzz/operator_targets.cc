// SPDX-License-Identifier: Apache-2.0
// Targets that read pods and workloads, which the tenants of a cluster write.
#include <string>
#include <vector>

#include "lib/api/annotations.h"
#include "lib/api/cache_warmup.h"
#include "lib/api/kubernetes.h"
#include "lib/base/digest.h"
#include "lib/base/utf8.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/factors/cause.h"
#include "operator/factors/differences.h"
#include "operator/factors/start_factors.h"
#include "operator/workloads/accelerator_requests.h"
#include "operator/workloads/shape.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {
namespace {

constexpr size_t kObjectBytesMax = 1U << 20U;
constexpr char kSalt[] = "0123456789abcdef0123456789abcdef";

// Writes the factors into the status of a CacheWarmup, as text, and reads them back.
factors::StartFactors Reread(const factors::StartFactors& written) {
  api::WarmupStatus status;
  status.bundles.push_back({.key = std::string(64, '0'),
                            .gpu_type = "cpu",
                            .cpu_class = "x86-64-v4/amd-25-17/00000001",
                            .digest = DigestOf("bundle"),
                            .factors = factors::Encode(written)});
  const codec::Json object = {{"metadata", {{"name", "x"}}},
                              {"spec", {{"selector", {{"matchLabels", {{"x", "x"}}}}}}},
                              {"status", api::EncodeStatus(status)}};
  const auto text = codec::ParseJson(codec::DumpJson(object));
  Require(text.ok(), "a status is JSON");
  const auto read = api::DecodeCacheWarmup(*text);
  Require(read.ok() && read->status.bundles.size() == 1, "factors fit into a status");
  return factors::Decode(read->status.bundles.front().factors);
}

}  // namespace

// Input: a pod, in JSON. Its first container is the builder of its last.
void StartFactors(std::string_view bytes) {
  const auto pod = codec::ParseJson(bytes, {.bytes_max = kObjectBytesMax});
  if (!pod.ok()) {
    return;
  }
  const codec::Json kept = factors::StartedContainersOf(*pod);
  Require(kept.is_array(), "the containers of a pod are a list");
  std::vector<factors::StartFactors> all;
  for (const codec::Json& container : kept) {
    all.push_back(factors::FactorsOf({.container = &container,
                                      .image = codec::TextAt(*pod, {"image"}).substr(0, 1024),
                                      .devices = 1,
                                      .container_name = "c",
                                      .gpu_type = "cpu"},
                                     "node-a", kSalt));
    Require(factors::Encode(all.back()).size() <= api::kStartFactorsMax,
            "the number of factors is limited");
    Require(Reread(all.back()) == all.back(), "factors read the same from a status");
    Require(factors::Differences(all.back(), all.back(), factors::Usage::kRead).differences.empty(),
            "a start does not differ from itself");
  }
  if (all.empty()) {
    return;
  }
  const api::BundleStatus bundle{.key = "k", .factors = factors::Encode(all.front())};
  for (const api::StartResult result : {api::StartResult::kMiss, api::StartResult::kPartial}) {
    const auto cause = factors::FindCause({.result = result,
                                           .node = "node-a",
                                           .factors = all.back(),
                                           .bundle = &bundle,
                                           .serves = true,
                                           .was_active = true});
    Require(!cause.has_value() ||
                (cause->text.size() <= factors::kCauseBytesMax && IsUtf8(cause->text)),
            "a cause fits into a status");
  }
}

// Input: a workload, in JSON.
void Workload(std::string_view bytes) {
  const auto workload = codec::ParseJson(bytes, {.bytes_max = kObjectBytesMax});
  if (!workload.ok()) {
    return;
  }
  const auto shape = workloads::ShapeOf(*workload);
  static_cast<void>(workloads::RequestsAccelerator(*workload));
  if (!shape.selector.empty()) {
    static_cast<void>(workloads::MakesPodsWith(*workload, shape.selector));
  }
  if (shape.pod_template != nullptr) {
    if (const codec::Json* spec = codec::At(*shape.pod_template, {"spec"}); spec != nullptr) {
      static_cast<void>(api::PodRequests(*spec));
    }
  }
  const auto annotated =
      api::ReadAnnotatedSpec(codec::Texts(codec::At(*workload, {"metadata", "annotations"})));
  Require(annotated.problems.size() <= 9, "the number of problems is limited");
  for (const std::string& problem : annotated.problems) {
    Require(problem.size() < 4096, "a problem is a short sentence");
  }
  codec::Json spec = annotated.spec;
  spec["selector"] = {{"matchLabels", {{"x", "x"}}}};
  Require(api::DecodeCacheWarmup({{"metadata", {{"name", "x"}}}, {"spec", spec}}).ok(),
          "accepted annotations are a valid spec");
}

}  // namespace cachewarm::fuzz
