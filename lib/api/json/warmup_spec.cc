// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/api/json/checks.h"
#include "lib/api/json/limits.h"
#include "lib/api/json/parts.h"
#include "lib/api/json/words.h"
#include "lib/api/json/writer.h"
#include "lib/api/workload_kinds.h"

namespace cachewarm::api {
namespace json {
namespace {

using codec::Json;
using codec::Reader;

std::string KindWords() {
  std::string words;
  for (const WorkloadKind& each : kWorkloadKinds) {
    words += fmt::format("{}{} ({})", words.empty() ? "" : ", ", each.kind, each.api_version);
  }
  return words;
}

void ReadWorkloadRef(Reader& reader, WorkloadRef& out) {
  reader.Require("apiVersion").Read("apiVersion", out.api_version, kNameBytes);
  reader.Require("kind").Read("kind", out.kind, kNameBytes);
  ReadChecked(reader, "name", out.name, kDnsSubdomain);
  const WorkloadKind kind{out.api_version, out.kind};
  if (std::find(kWorkloadKinds.begin(), kWorkloadKinds.end(), kind) == kWorkloadKinds.end()) {
    reader.Fail("kind",
                fmt::format("expected one of {}; for pods of other owners use spec.selector alone",
                            KindWords()));
  }
}

void ReadCacheChoice(Reader& reader, CacheChoice& out) {
  ReadChecked(reader, "name", out.name, kDnsLabel);
  if (reader.Has("env")) {
    ReadChecked(reader, "env", out.env, kEnvName);
  }
  if (reader.Has("path")) {
    ReadChecked(reader, "path", out.path, kRelativePath);
  }
  reader.Read("include", out.include, kIncludesMax);
  if (reader.Has("env") != reader.Has("path")) {
    reader.Fail(reader.Has("env") ? "path" : "env", "a cache of your own needs both env and path");
  } else if (!reader.Has("path") && !out.include.empty()) {
    reader.Fail("include", "only a cache of your own (env and path) may name files");
  }
}

void ReadTemplate(Reader& reader, WarmupSpec& out) {
  if (const Json* member = reader.Member("template"); member != nullptr) {
    if (member->is_object()) {
      out.pod_template = std::make_shared<const Json>(*member);
    } else {
      reader.Fail("template", "expected a pod template");
    }
  }
}

void ReadCompile(Reader& reader, CompileSpec& out) {
  ReadWord(reader, "builder", kBuilderWords, out.builder);
  reader.Read("timeoutSeconds", out.timeout_seconds, 1, kSecondsMax)
      .Read("pendingSeconds", out.pending_seconds, 1, kSecondsMax)
      .Read("settleSeconds", out.settle_seconds, 1, kSettleSecondsMax)
      .Read("backoffLimit", out.backoff_limit, 0, kBackoffLimitMax);
}

void ReadGate(Reader& reader, GateSpec& out) {
  ReadWord(reader, "mode", kGateModeWords, out.mode);
  reader.Read("maxHoldSeconds", out.max_hold_seconds, 0, kHoldSecondsMax);
}

void CheckWhosePods(Reader& reader, const WarmupSpec& spec) {
  const bool has_template = spec.pod_template != nullptr;
  if (spec.workload_ref.has_value() && (has_template || !spec.selector.empty())) {
    reader.Fail("workloadRef", "stands alone: remove template and selector, or workloadRef");
  } else if (!spec.workload_ref.has_value() && !has_template && spec.selector.empty()) {
    reader.Fail("workloadRef", "name one of workloadRef, template or selector");
  }
}

Json EncodeWorkloadRef(const WorkloadRef& ref) {
  return Writer()
      .Always("apiVersion", ref.api_version)
      .Always("kind", ref.kind)
      .Always("name", ref.name)
      .Take();
}

}  // namespace

void ReadSpec(Reader& reader, WarmupSpec& out) {
  reader.Object("workloadRef",
                [&](Reader& ref) { ReadWorkloadRef(ref, out.workload_ref.emplace()); });
  ReadTemplate(reader, out);
  reader.Object("selector", [&](Reader& selector) {
    selector.Require("matchLabels").Read("matchLabels", out.selector, kSelectorLabelsMax);
    if (out.selector.empty()) {
      selector.Fail("matchLabels", "expected at least one label");
    }
  });
  if (reader.Has("container")) {
    ReadChecked(reader, "container", out.container, kDnsLabel);
  }
  ReadCaches(reader, out.caches);
  reader.Read("gpuTypes", out.gpu_types, kGpuTypesMax)
      .Read("nodeSelector", out.node_selector, kSelectorLabelsMax)
      .Object("compile", [&](Reader& compile) { ReadCompile(compile, out.compile); })
      .Object("gate", [&](Reader& gate) { ReadGate(gate, out.gate); })
      .Read("paused", out.paused);
  CheckWhosePods(reader, out);
}

void ReadCaches(Reader& reader, std::vector<CacheChoice>& out) {
  reader.List("caches", kCachesMax,
              [&](Reader& item) { ReadCacheChoice(item, out.emplace_back()); });
}

Json EncodeCaches(const std::vector<CacheChoice>& caches) {
  return ListOf(caches, kCachesMax, [](const CacheChoice& cache) {
    return Writer()
        .Always("name", cache.name)
        .Put("env", cache.env, 128)
        .Put("path", cache.path, 128)
        .Put("include", cache.include, kIncludesMax)
        .Take();
  });
}

}  // namespace json

codec::Json EncodeSpec(const WarmupSpec& spec) {
  using json::Writer;
  Writer out;
  if (spec.workload_ref.has_value()) {
    out.Always("workloadRef", json::EncodeWorkloadRef(*spec.workload_ref));
  }
  if (spec.pod_template != nullptr) {
    out.Always("template", *spec.pod_template);
  }
  if (!spec.selector.empty()) {
    out.Always("selector", Writer().Put("matchLabels", spec.selector).Take());
  }
  out.Put("container", spec.container, json::kLabelBytes)
      .PutPart("caches", json::EncodeCaches(spec.caches))
      .Put("gpuTypes", spec.gpu_types, json::kGpuTypesMax)
      .Put("nodeSelector", spec.node_selector)
      .Always("compile", Writer()
                             .Always("builder", Name(spec.compile.builder))
                             .Always("timeoutSeconds", spec.compile.timeout_seconds)
                             .Always("pendingSeconds", spec.compile.pending_seconds)
                             .Always("settleSeconds", spec.compile.settle_seconds)
                             .Always("backoffLimit", spec.compile.backoff_limit)
                             .Take())
      .Always("gate", Writer()
                          .Always("mode", Name(spec.gate.mode))
                          .Always("maxHoldSeconds", spec.gate.max_hold_seconds)
                          .Take())
      .Always("paused", spec.paused);
  return out.Take();
}

}  // namespace cachewarm::api
