// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "lib/api/json/checks.h"
#include "lib/api/json/limits.h"
#include "lib/api/json/parts.h"
#include "lib/api/json/words.h"
#include "lib/api/json/writer.h"

namespace cachewarm::api::json {
namespace {

using codec::Json;
using codec::Reader;

struct CountOf {
  StartResult result;
  int64_t StartCounts::*count;
};
constexpr std::array<CountOf, 8> kCounts = {{{StartResult::kBuilder, &StartCounts::builder},
                                             {StartResult::kCold, &StartCounts::cold},
                                             {StartResult::kHit, &StartCounts::hit},
                                             {StartResult::kPartial, &StartCounts::partial},
                                             {StartResult::kMiss, &StartCounts::miss},
                                             {StartResult::kInert, &StartCounts::inert},
                                             {StartResult::kHollow, &StartCounts::hollow},
                                             {StartResult::kUnknown, &StartCounts::unknown}}};

void ReadSample(Reader& reader, StartSample& out) {
  ReadChecked(reader, "podUID", out.pod_uid, kUid);
  ReadWord(reader, "result", kStartResultWords, out.result);
  reader.Read("pod", out.pod, kNameBytes)
      .Read("node", out.node, kNameBytes)
      .Read("key", out.key, 64)
      .Read("gpuType", out.gpu_type, kGpuTypeBytes)
      .Read("startSeconds", out.start_seconds)
      .Read("holdSeconds", out.hold_seconds)
      .Read("compileSeconds", out.compile_seconds)
      .Read("savedSeconds", out.saved_seconds);
}

Json EncodeSample(const StartSample& sample) {
  return Writer()
      .Always("podUID", sample.pod_uid)
      .Always("result", Name(sample.result))
      .Put("pod", sample.pod, kNameBytes)
      .Put("node", sample.node, kNameBytes)
      .Put("key", sample.key, 64)
      .Put("gpuType", sample.gpu_type, kGpuTypeBytes)
      .Put("startSeconds", sample.start_seconds)
      .Put("holdSeconds", sample.hold_seconds)
      .Put("compileSeconds", sample.compile_seconds)
      .Put("savedSeconds", sample.saved_seconds)
      .Take();
}

Json EncodeCounts(const StartCounts& counts) {
  Writer out;
  for (const CountOf& each : kCounts) {
    out.Put(Name(each.result), counts.*each.count);
  }
  return out.Take();
}

}  // namespace

void ReadStarts(Reader& reader, Starts& out) {
  ReadTime(reader, "countingStartedTime", out.counting_started_time);
  reader.Object("counts", [&](Reader& counts) {
    for (const CountOf& each : kCounts) {
      counts.Read(Name(each.result), out.counts.*each.count, 0);
    }
  });
  reader.Read("holdMedianSeconds", out.hold_median_seconds)
      .Read("coldMedianSeconds", out.cold_median_seconds)
      .Read("warmMedianSeconds", out.warm_median_seconds)
      .Read("savedSeconds", out.saved_seconds)
      .Read("lostSeconds", out.lost_seconds)
      .List("recent", kRecentStartsMax,
            [&](Reader& item) { ReadSample(item, out.recent.emplace_back()); })
      .Read("countedPodUIDs", out.counted_pod_uids, kCountedMax);
}

Json EncodeStarts(const Starts& starts) {
  return Writer()
      .Put("countingStartedTime", starts.counting_started_time)
      .PutPart("counts", EncodeCounts(starts.counts))
      .Put("holdMedianSeconds", starts.hold_median_seconds)
      .Put("coldMedianSeconds", starts.cold_median_seconds)
      .Put("warmMedianSeconds", starts.warm_median_seconds)
      .Put("savedSeconds", starts.saved_seconds)
      .Put("lostSeconds", starts.lost_seconds)
      .PutPart("recent", ListOf(starts.recent, kRecentStartsMax, EncodeSample))
      .Put("countedPodUIDs", starts.counted_pod_uids, kCountedMax)
      .Take();
}

}  // namespace cachewarm::api::json
