// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "lib/api/json/checks.h"
#include "lib/api/json/limits.h"
#include "lib/api/json/parts.h"
#include "lib/api/json/words.h"
#include "lib/api/json/writer.h"
#include "lib/api/workload_kinds.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

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
  if (!IsWorkloadKind(out.api_version, out.kind)) {
    reader.Fail("kind",
                fmt::format("expected one of {}; for pods of other owners use only spec.selector",
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
    reader.Fail(reader.Has("env") ? "path" : "env", "a custom cache needs both env and path");
  } else if (!reader.Has("path") && !out.include.empty()) {
    reader.Fail("include", "is only for custom caches, which have env and path");
  }
}

void ReadTemplate(Reader& reader, WarmupSpec& out) {
  if (const Json* member = reader.Member("template"); member != nullptr) {
    if (member->is_object()) {
      out.pod_template = std::make_shared<const Json>(*member);
    } else {
      reader.Fail("template", "expected an object: a pod template");
    }
  }
}

// Accepts only paths that can neither end the request line nor name another host.
bool IsRequestPath(std::string_view text) {
  return text.starts_with('/') && !text.starts_with("//") &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

bool IsHeaderName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  });
}

// True for the headers of framing and routing, which the operator sets itself.
bool IsReservedHeader(std::string_view header) {
  constexpr std::array<std::string_view, 8> kOwn = {
      "connection", "content-length",    "expect", "proxy-connection", "te",
      "trailer",    "transfer-encoding", "upgrade"};
  return std::find(kOwn.begin(), kOwn.end(), absl::AsciiStrToLower(std::string(header))) !=
         kOwn.end();
}

bool IsHeaderValue(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

void ReadHeader(Reader& reader, HttpHeader& out) {
  reader.Read("name", out.name, kHeaderNameBytes).Read("value", out.value, kHeaderValueBytes);
  if (!IsHeaderName(out.name)) {
    reader.Fail("name", "expected letters, digits, - and _");
  }
  if (IsReservedHeader(out.name)) {
    reader.Fail("name", "the operator sets this header itself; remove the header");
  }
  if (!IsHeaderValue(out.value)) {
    reader.Fail("value", "expected printable ASCII");
  }
}

void ReadRequest(Reader& reader, BuildRequest& out) {
  reader.Read("method", out.method)
      .Require("path")
      .Read("path", out.path, kRequestPathBytes)
      .Require("port")
      .Read("port", out.port, 1, 65'535)
      .Read("body", out.body, kRequestBodyBytes)
      .Read("expectStatus", out.expect_status, 100, 599)
      .Read("repeat", out.repeat, 1, kRepeatMax)
      .Read("timeoutSeconds", out.timeout_seconds, 1, kRequestSecondsMax)
      .List("headers", kRequestHeadersMax,
            [&](Reader& item) { ReadHeader(item, out.headers.emplace_back()); });
  if (std::find(kRequestMethods.begin(), kRequestMethods.end(), out.method) ==
      kRequestMethods.end()) {
    reader.Fail("method", "expected GET, HEAD, POST, PUT, PATCH or DELETE");
  }
  if (!IsRequestPath(out.path)) {
    reader.Fail("path", "expected one leading slash, and printable ASCII without blanks after it");
  }
}

void ReadOverrides(Reader& reader, CompileSpec& out) {
  const Json* member = reader.Member("overrides");
  if (member == nullptr) {
    return;
  }
  if (!member->is_object()) {
    reader.Fail("overrides", "expected an object with the metadata or spec of a pod");
  } else if (codec::DumpJson(*member).size() > kOverridesBytes) {
    reader.Fail("overrides", "is larger than 64 KiB; make it smaller");
  } else {
    out.overrides = std::make_shared<const Json>(*member);
  }
}

void ReadCompile(Reader& reader, CompileSpec& out) {
  ReadWord(reader, "builder", kBuilderWords, out.builder);
  ReadWord(reader, "proof", kProofWords, out.proof);
  reader.Read("timeoutSeconds", out.timeout_seconds, 1, kSecondsMax)
      .Read("pendingSeconds", out.pending_seconds, 1, kSecondsMax)
      .Read("settleSeconds", out.settle_seconds, 1, kSettleSecondsMax)
      .Read("backoffLimit", out.backoff_limit, 0, kBackoffLimitMax)
      .List("requests", kRequestsMax,
            [&](Reader& item) { ReadRequest(item, out.requests.emplace_back()); });
  ReadOverrides(reader, out);
  if (out.builder == Builder::kFirstPod && (out.overrides != nullptr || !out.requests.empty())) {
    reader.Fail("builder",
                "overrides and requests are for builder Jobs; set builder to Job or Auto");
  }
  if (out.proof == Proof::kEngine && out.builder != Builder::kJob) {
    reader.Fail("proof",
                "only bundles of builder Jobs are proven; set builder to Job, or remove proof");
  }
}

void ReadGate(Reader& reader, GateSpec& out) {
  ReadWord(reader, "mode", kGateModeWords, out.mode);
  reader.Read("maxHoldSeconds", out.max_hold_seconds, 0, kHoldSecondsMax);
}

void CheckWhosePods(Reader& reader, const WarmupSpec& spec) {
  const bool has_template = spec.pod_template != nullptr;
  if (spec.workload_ref.has_value() && (has_template || !spec.selector.empty())) {
    reader.Fail("workloadRef",
                "excludes template and selector: remove them, or remove workloadRef");
  } else if (!spec.workload_ref.has_value() && !has_template && spec.selector.empty()) {
    reader.Fail("workloadRef", "set one of workloadRef, template or selector");
  }
}

Json EncodeRequest(const BuildRequest& request) {
  return Writer()
      .Always("method", request.method)
      .Always("path", request.path)
      .Always("port", request.port)
      .PutPart(
          "headers",
          ListOf(request.headers, kRequestHeadersMax,
                 [](const HttpHeader& header) {
                   return Writer().Always("name", header.name).Always("value", header.value).Take();
                 }))
      .Put("body", request.body, kRequestBodyBytes)
      .Put("expectStatus", int64_t{request.expect_status})
      .Always("repeat", request.repeat)
      .Always("timeoutSeconds", request.timeout_seconds)
      .Take();
}

Json EncodeCompile(const CompileSpec& compile) {
  Writer out;
  out.Always("builder", Name(compile.builder))
      .Always("timeoutSeconds", compile.timeout_seconds)
      .Always("pendingSeconds", compile.pending_seconds)
      .Always("settleSeconds", compile.settle_seconds)
      .Always("backoffLimit", compile.backoff_limit)
      .PutPart("requests", ListOf(compile.requests, kRequestsMax, EncodeRequest));
  if (compile.overrides != nullptr) {
    out.Always("overrides", *compile.overrides);
  }
  // None is left out, so that the hashes of settings and revisions by older operators stay valid.
  if (compile.proof != Proof::kNone) {
    out.Always("proof", Name(compile.proof));
  }
  return out.Take();
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
      .Read("hangSeconds", out.hang_seconds, kHangSecondsMin, kSecondsMax)
      .Read("retain", out.retain, 0, kRetainMax)
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
      .Always("compile", json::EncodeCompile(spec.compile))
      .Always("gate", Writer()
                          .Always("mode", Name(spec.gate.mode))
                          .Always("maxHoldSeconds", spec.gate.max_hold_seconds)
                          .Take())
      .Always("hangSeconds", spec.hang_seconds)
      .Always("retain", spec.retain)
      .Always("paused", spec.paused);
  return out.Take();
}

}  // namespace cachewarm::api
