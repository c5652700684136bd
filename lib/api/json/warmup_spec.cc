// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "lib/api/json/overrides.h"
#include "lib/api/json/tables.h"
#include "lib/api/workload_kinds.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::api::json {
namespace {

using codec::Json;
using codec::Reader;

std::string KindWords() {
  std::string words;
  for (const SupportedKind& each : kWorkloadKinds) {
    words += fmt::format("{}{} ({})", words.empty() ? "" : ", ", each.kind, each.api_version);
  }
  return words;
}

void CheckWorkloadRef(Reader& reader, const WorkloadRef& ref) {
  if (!IsWorkloadKind(ref.api_version, ref.kind)) {
    reader.Fail("kind",
                fmt::format("expected one of {}; for pods of other owners use only spec.selector",
                            KindWords()));
  }
}

void ReadTemplate(const Rule& rule, Reader& reader, WarmupSpec& out) {
  if (const Json* member = reader.Member(rule.name); member != nullptr) {
    if (member->is_object()) {
      out.pod_template = std::make_shared<const Json>(*member);
    } else {
      reader.Fail(rule.name, "expected an object: a pod template");
    }
  }
}

void WriteTemplate(const Rule& rule, const WarmupSpec& spec, Writer& out) {
  if (spec.pod_template != nullptr) {
    out.Always(rule.name, *spec.pod_template);
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

bool IsRequestMethod(std::string_view text) {
  return std::find(kRequestMethods.begin(), kRequestMethods.end(), text) != kRequestMethods.end();
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

void CheckHeader(Reader& reader, const HttpHeader& header) {
  if (IsReservedHeader(header.name)) {
    reader.Fail("name", "the operator sets this header itself; remove the header");
  }
}

void CheckCompile(Reader& reader, const CompileSpec& compile) {
  if (compile.overrides == Overrides{}) {
    reader.Fail("overrides", "is empty; set one of its fields, or remove it");
  }
  if (compile.builder == Builder::kFirstPod &&
      (compile.overrides.has_value() || !compile.requests.empty())) {
    reader.Fail("builder",
                "overrides and requests are for builder Jobs; set builder to Job or Auto");
  }
  if (compile.proof == Proof::kEngine && compile.builder != Builder::kJob) {
    reader.Fail("proof",
                "only bundles of builder Jobs are proven; set builder to Job, or remove proof");
  }
}

void CheckSelector(Reader& reader, const WarmupSpec& spec) {
  if (spec.selector.empty()) {
    reader.Fail("matchLabels", "expected at least one label");
  }
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

constexpr Field<WorkloadRef> kWorkloadRef[] = {
    Required<&WorkloadRef::api_version>("apiVersion", kName),
    Required<&WorkloadRef::kind>("kind", kName),
    Required<&WorkloadRef::name>("name", kDnsSubdomain),
    Check<&CheckWorkloadRef>(),
};

constexpr Field<WarmupSpec> kSelector[] = {
    Required<&WarmupSpec::selector>("matchLabels", kLabelMap),
    Check<&CheckSelector>(),
};

constexpr Field<HttpHeader> kHttpHeader[] = {
    Always<&HttpHeader::name>(
        "name",
        {.bytes = 128, .pattern = &IsHeaderName, .words = "expected letters, digits, - and _"}),
    Always<&HttpHeader::value>(
        "value", {.bytes = 4096, .pattern = &IsHeaderValue, .words = "expected printable ASCII"}),
    Check<&CheckHeader>(),
};

constexpr Field<BuildRequest> kBuildRequest[] = {
    Always<&BuildRequest::method>("method",
                                  {.bytes = 6,
                                   .pattern = &IsRequestMethod,
                                   .words = "expected GET, HEAD, POST, PUT, PATCH or DELETE"}),
    Required<&BuildRequest::path>(
        "path",
        {.bytes = 1024,
         .pattern = &IsRequestPath,
         .words = "expected one leading slash, and printable ASCII without blanks after it"}),
    Required<&BuildRequest::port>("port", {.min = 1, .max = 65'535}),
    Optional<&BuildRequest::body>("body", {.bytes = 65'536}),
    Optional<&BuildRequest::expect_status>("expectStatus", {.min = 100, .max = 599}),
    Always<&BuildRequest::repeat>("repeat", {.min = 1, .max = 100}),
    Always<&BuildRequest::timeout_seconds>("timeoutSeconds", {.min = 1, .max = 3'600}),
    Optional<&BuildRequest::headers, kHttpHeader>("headers", {.items = 16}),
};

// A proof of None is not written, so that the hashes of settings by older operators stay valid.
constexpr Field<CompileSpec> kCompileSpec[] = {
    Always<&CompileSpec::builder, kBuilderWords>("builder"),
    Optional<&CompileSpec::proof, kProofWords>("proof"),
    Always<&CompileSpec::timeout_seconds>("timeoutSeconds", {.min = 1, .max = kSecondsMax}),
    Always<&CompileSpec::pending_seconds>("pendingSeconds", {.min = 1, .max = kSecondsMax}),
    Always<&CompileSpec::settle_seconds>("settleSeconds", {.min = 1, .max = kSettleSecondsMax}),
    Always<&CompileSpec::backoff_limit>("backoffLimit", {.max = 10}),
    Optional<&CompileSpec::requests, kBuildRequest>("requests", {.items = 16}),
    Optional<&CompileSpec::overrides, kOverrides>("overrides"),
    Check<&CheckCompile>(),
};

constexpr Field<GateSpec> kGateSpec[] = {
    Always<&GateSpec::mode, kGateModeWords>("mode"),
    Always<&GateSpec::max_hold_seconds>("maxHoldSeconds", {.max = kHoldSecondsMax}),
};

constexpr Field<WarmupSpec> kWarmupSpec[] = {
    Optional<&WarmupSpec::workload_ref, kWorkloadRef>("workloadRef"),
    Custom<WarmupSpec>({"template"}, &ReadTemplate, &WriteTemplate),
    Custom<WarmupSpec>(
        {.name = "selector", .shape = [] { return Shape{.fields = RulesOf(kSelector)}; }},
        [](const Rule& rule, Reader& reader, WarmupSpec& out) {
          reader.Object(rule.name, [&out](Reader& part) { ReadObject(kSelector, part, out); });
        },
        [](const Rule& rule, const WarmupSpec& spec, Writer& out) {
          if (!spec.selector.empty()) {
            out.Always(rule.name, WriteObject(kSelector, spec));
          }
        }),
    Optional<&WarmupSpec::container>("container", kDnsLabel),
    Optional<&WarmupSpec::caches, kCacheChoice>("caches", {.items = kCachesMax}),
    Optional<&WarmupSpec::gpu_types>("gpuTypes", {.items = 32, .bytes = kGpuTypeBytes}),
    Optional<&WarmupSpec::node_selector>("nodeSelector", kLabelMap),
    Always<&WarmupSpec::compile, kCompileSpec>("compile"),
    Always<&WarmupSpec::gate, kGateSpec>("gate"),
    Always<&WarmupSpec::hang_seconds>("hangSeconds", {.min = 10, .max = kSecondsMax}),
    Always<&WarmupSpec::retain>("retain", {.max = kRetainMax}),
    Optional<&WarmupSpec::harvest>("harvest"),
    Always<&WarmupSpec::paused>("paused"),
    Check<&CheckWhosePods>(),
};

}  // namespace

void CheckCacheChoice(Reader& reader, const CacheChoice& cache) {
  if (reader.Has("env") != reader.Has("path")) {
    reader.Fail(reader.Has("env") ? "path" : "env", "a custom cache needs both env and path");
  } else if (!reader.Has("path") && !cache.include.empty()) {
    reader.Fail("include", "is only for custom caches, which have env and path");
  }
}

Rows<WarmupSpec> WarmupSpecFields() {
  return kWarmupSpec;
}

}  // namespace cachewarm::api::json
