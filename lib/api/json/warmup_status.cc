// SPDX-License-Identifier: Apache-2.0
#include "lib/api/json/checks.h"
#include "lib/api/json/limits.h"
#include "lib/api/json/parts.h"
#include "lib/api/json/words.h"
#include "lib/api/json/writer.h"

namespace cachewarm::api {
namespace json {
namespace {

using codec::Json;
using codec::Reader;

void ReadInjection(Reader& reader, Injection& out) {
  reader.Read("labels", out.labels, kSelectorLabelsMax)
      .Read("container", out.container, kLabelBytes)
      .Read("gate", out.gate)
      .Read("warmRevisions", out.warm_revisions, kWarmRevisionsMax);
  reader.List("env", kEnvMax, [&](Reader& item) {
    EnvVar& var = out.env.emplace_back();
    ReadChecked(item, "name", var.name, kEnvName);
    item.Read("value", var.value, kEnvValueBytes);
  });
}

// Writes every member that the admission policy reads, even if it is empty: a missing member would
// be a CEL error, which prevents the injection.
Json EncodeInjection(const Injection& injection) {
  return Writer()
      .Always("labels", injection.labels)
      .Always("container", injection.container)
      .Always("env",
              ListOf(injection.env, kEnvMax,
                     [](const EnvVar& var) {
                       return Writer().Always("name", var.name).Always("value", var.value).Take();
                     }))
      .Always("gate", injection.gate)
      .Put("warmRevisions", injection.warm_revisions, kWarmRevisionsMax)
      .Take();
}

void ReadSuspension(Reader& reader, Suspension& out) {
  reader.Read("reason", out.reason, kReasonBytes)
      .Read("message", out.message, size_t{4} * kMessageBytes)
      .Read("templateHash", out.template_hash, kHashBytes)
      .Read("policyHash", out.policy_hash, kHashBytes)
      .Read("generation", out.generation, 0)
      .Read("revision", out.revision, kLabelBytes)
      .List("nodes", kSuspensionNodesMax, [&](Reader& item) {
        NodeIdentity& node = out.nodes.emplace_back();
        ReadChecked(item, "name", node.name, kDnsSubdomain);
        item.Read("uid", node.uid, kUidBytes).Read("bootID", node.boot_id, kHashBytes);
      });
  ReadTime(reader, "suspendedTime", out.suspended_time);
  ReadTime(reader, "resumedTime", out.resumed_time);
}

Json EncodeIdentity(const NodeIdentity& node) {
  return Writer()
      .Always("name", node.name)
      .Put("uid", node.uid, kUidBytes)
      .Put("bootID", node.boot_id, kHashBytes)
      .Take();
}

Json EncodeSuspension(const Suspension& suspension) {
  return Writer()
      .Put("reason", suspension.reason, kReasonBytes)
      .Put("message", suspension.message, kMessageBytes)
      .Put("suspendedTime", suspension.suspended_time)
      .Put("templateHash", suspension.template_hash, kHashBytes)
      .Put("policyHash", suspension.policy_hash, kHashBytes)
      .Put("generation", suspension.generation)
      .Put("revision", suspension.revision, kLabelBytes)
      .PutPart("nodes", ListOf(suspension.nodes, kSuspensionNodesMax, EncodeIdentity))
      .Put("resumedTime", suspension.resumed_time)
      .Take();
}

void ReadHungStart(Reader& reader, HungStart& out) {
  ReadChecked(reader, "podUID", out.pod_uid, kUid);
  reader.Read("pod", out.pod, kNameBytes)
      .Read("node", out.node, kNameBytes)
      .Read("group", out.group, kGroupBytes);
  ReadTime(reader, "startedTime", out.started_time);
  ReadTime(reader, "detectedTime", out.detected_time);
}

Json EncodeHungStart(const HungStart& start) {
  return Writer()
      .Always("podUID", start.pod_uid)
      .Put("pod", start.pod, kNameBytes)
      .Put("node", start.node, kNameBytes)
      .Put("group", start.group, kGroupBytes)
      .Put("startedTime", start.started_time)
      .Put("detectedTime", start.detected_time)
      .Take();
}

void ReadHungStarts(Reader& reader, std::vector<HungStart>& out) {
  reader.List("hungStarts", kHungStartsMax,
              [&](Reader& item) { ReadHungStart(item, out.emplace_back()); });
}

void ReadSuspendedBundle(Reader& reader, SuspendedBundle& out) {
  ReadChecked(reader, "key", out.key, kKey);
  reader.Require("digest");
  ReadDigest(reader, "digest", out.digest);
  reader.Read("gpuType", out.gpu_type, kGpuTypeBytes)
      .Read("cpuClass", out.cpu_class, kCpuClassBytes)
      .Read("image", out.image, kImageBytes)
      .Read("native", out.native)
      .Read("message", out.message, size_t{4} * kMessageBytes);
  ReadTime(reader, "suspendedTime", out.suspended_time);
  ReadHungStarts(reader, out.hung_starts);
}

Json EncodeSuspendedBundle(const SuspendedBundle& bundle) {
  return Writer()
      .Always("key", bundle.key)
      .Always("digest", bundle.digest.ToString())
      .Put("gpuType", bundle.gpu_type, kGpuTypeBytes)
      .Put("cpuClass", bundle.cpu_class, kCpuClassBytes)
      .Put("image", bundle.image, kImageBytes)
      .Always("native", bundle.native)
      .Put("suspendedTime", bundle.suspended_time)
      .PutPart("hungStarts", ListOf(bundle.hung_starts, kHungStartsMax, EncodeHungStart))
      .Put("message", bundle.message, kMessageBytes)
      .Take();
}

void ReadBundle(Reader& reader, BundleStatus& out) {
  ReadChecked(reader, "key", out.key, kKey);
  reader.Read("gpuType", out.gpu_type, kGpuTypeBytes)
      .Read("cpuClass", out.cpu_class, kCpuClassBytes)
      .Read("image", out.image, kImageBytes)
      .Read("bytes", out.bytes, 0)
      .Read("files", out.files, 0, kCountMax)
      .Read("native", out.native)
      .Read("compileSeconds", out.compile_seconds)
      .Read("builderPod", out.builder_pod, kNameBytes)
      .Read("builderNode", out.builder_node, kNameBytes)
      .Read("nodesDesired", out.nodes_desired, 0, kCountMax)
      .Read("nodesReady", out.nodes_ready, 0, kCountMax)
      .Read("nodesFailed", out.nodes_failed, 0, kCountMax)
      .Read("nodesWaiting", out.nodes_waiting, 0, kCountMax)
      .Read("message", out.message, size_t{4} * kMessageBytes);
  ReadDigest(reader, "digest", out.digest);
  ReadTime(reader, "publishedTime", out.published_time);
  ReadHungStarts(reader, out.hung_starts);
}

Json EncodeBundle(const BundleStatus& bundle) {
  return Writer()
      .Always("key", bundle.key)
      .Put("gpuType", bundle.gpu_type, kGpuTypeBytes)
      .Put("cpuClass", bundle.cpu_class, kCpuClassBytes)
      .Put("image", bundle.image, kImageBytes)
      .Put("digest", bundle.digest)
      .Put("bytes", bundle.bytes)
      .Put("files", int64_t{bundle.files})
      .Always("native", bundle.native)
      .Put("compileSeconds", bundle.compile_seconds)
      .Put("builderPod", bundle.builder_pod, kNameBytes)
      .Put("builderNode", bundle.builder_node, kNameBytes)
      .Put("publishedTime", bundle.published_time)
      .Put("nodesDesired", int64_t{bundle.nodes_desired})
      .Put("nodesReady", int64_t{bundle.nodes_ready})
      .Put("nodesFailed", int64_t{bundle.nodes_failed})
      .Put("nodesWaiting", int64_t{bundle.nodes_waiting})
      .PutPart("hungStarts", ListOf(bundle.hung_starts, kHungStartsMax, EncodeHungStart))
      .Put("message", bundle.message, kMessageBytes)
      .Take();
}

void ReadCaptured(Reader& reader, CapturedBundle& out) {
  reader.Require("digest");
  ReadDigest(reader, "digest", out.digest);
  reader.Read("bytes", out.bytes, 0)
      .Read("files", out.files, 0, kCountMax)
      .Read("native", out.native)
      .Read("compileSeconds", out.compile_seconds);
  ReadTime(reader, "capturedTime", out.captured_time);
}

Json EncodeCaptured(const CapturedBundle& captured) {
  return Writer()
      .Always("digest", captured.digest.ToString())
      .Put("bytes", captured.bytes)
      .Put("files", int64_t{captured.files})
      .Always("native", captured.native)
      .Put("compileSeconds", captured.compile_seconds)
      .Put("capturedTime", captured.captured_time)
      .Take();
}

void ReadProof(Reader& reader, ProofStatus& out) {
  reader.Read("job", out.job, kNameBytes).Read("podUID", out.pod_uid, kUidBytes);
  ReadTime(reader, "startedTime", out.started_time);
  ReadTime(reader, "requestedTime", out.requested_time);
  ReadTime(reader, "answeredTime", out.answered_time);
}

Json EncodeProof(const ProofStatus& proof) {
  return Writer()
      .Put("job", proof.job, kNameBytes)
      .Put("podUID", proof.pod_uid, kUidBytes)
      .Put("startedTime", proof.started_time)
      .Put("requestedTime", proof.requested_time)
      .Put("answeredTime", proof.answered_time)
      .Take();
}

void ReadBuilder(Reader& reader, BuilderStatus& out) {
  ReadChecked(reader, "key", out.key, kKey);
  ReadWord(reader, "state", kBuilderStateWords, out.state);
  reader.Read("gpuType", out.gpu_type, kGpuTypeBytes)
      .Read("cpuClass", out.cpu_class, kCpuClassBytes)
      .Read("image", out.image, kImageBytes)
      .Read("revision", out.revision, kLabelBytes)
      .Read("settingsHash", out.settings_hash, kHashBytes)
      .Read("podUID", out.pod_uid, kUidBytes)
      .Read("podName", out.pod_name, kNameBytes)
      .Read("job", out.job, kNameBytes)
      .Read("node", out.node, kNameBytes)
      .Read("attempt", out.attempt, 1, kCountMax)
      .Read("bundlesSuspended", out.bundles_suspended, 0, kCountMax)
      .Read("ranks", out.ranks, kRanksMax)
      .Read("reason", out.reason, kReasonBytes)
      .Read("message", out.message, size_t{4} * kMessageBytes);
  ReadTime(reader, "electedTime", out.elected_time);
  ReadTime(reader, "answeredTime", out.answered_time);
  ReadTime(reader, "finishedTime", out.finished_time);
  reader.Object("captured", [&](Reader& part) { ReadCaptured(part, out.captured.emplace()); });
  reader.Object("proof", [&](Reader& part) { ReadProof(part, out.proof.emplace()); });
}

Json EncodeBuilder(const BuilderStatus& builder) {
  return Writer()
      .Always("key", builder.key)
      .Always("state", Name(builder.state))
      .Always("attempt", builder.attempt)
      .Put("bundlesSuspended", int64_t{builder.bundles_suspended})
      .Put("gpuType", builder.gpu_type, kGpuTypeBytes)
      .Put("cpuClass", builder.cpu_class, kCpuClassBytes)
      .Put("image", builder.image, kImageBytes)
      .Put("revision", builder.revision, kLabelBytes)
      .Put("settingsHash", builder.settings_hash, kHashBytes)
      .Put("podUID", builder.pod_uid, kUidBytes)
      .Put("podName", builder.pod_name, kNameBytes)
      .Put("job", builder.job, kNameBytes)
      .Put("node", builder.node, kNameBytes)
      .Put("electedTime", builder.elected_time)
      .Put("answeredTime", builder.answered_time)
      .Put("finishedTime", builder.finished_time)
      .Put("reason", builder.reason, kReasonBytes)
      .Put("message", builder.message, kMessageBytes)
      .Put("ranks", builder.ranks, kRanksMax)
      .PutPart("captured", builder.captured ? EncodeCaptured(*builder.captured) : Json())
      .PutPart("proof", builder.proof ? EncodeProof(*builder.proof) : Json())
      .Take();
}

void ReadSummary(Reader& reader, Summary& out) {
  reader.Read("types", out.types, kSummaryBytes)
      .Read("nodes", out.nodes, kSummaryBytes)
      .Read("hit", out.hit, kSummaryBytes)
      .Read("saved", out.saved, kSummaryBytes);
}

Json EncodeSummary(const Summary& summary) {
  return Writer()
      .Put("types", summary.types, kSummaryBytes)
      .Put("nodes", summary.nodes, kSummaryBytes)
      .Put("hit", summary.hit, kSummaryBytes)
      .Put("saved", summary.saved, kSummaryBytes)
      .Take();
}

}  // namespace

void ReadStatus(Reader& reader, WarmupStatus& out) {
  reader.Read("observedGeneration", out.observed_generation, 0);
  reader.List("conditions", kConditionsMax,
              [&](Reader& item) { Decode(item, out.conditions.emplace_back()); });
  reader.Read("minAvailable", out.min_available, 0);
  reader.Object("injection", [&](Reader& part) { ReadInjection(part, out.injection.emplace()); });
  reader.Object("suspension",
                [&](Reader& part) { ReadSuspension(part, out.suspension.emplace()); });
  reader.List("bundles", kKeysMax,
              [&](Reader& item) { ReadBundle(item, out.bundles.emplace_back()); });
  reader.List("suspendedBundles", kSuspendedBundlesMax, [&](Reader& item) {
    ReadSuspendedBundle(item, out.suspended_bundles.emplace_back());
  });
  reader.List("builders", kKeysMax,
              [&](Reader& item) { ReadBuilder(item, out.builders.emplace_back()); });
  reader.Object("starts", [&](Reader& part) { ReadStarts(part, out.starts); });
  reader.Object("summary", [&](Reader& part) { ReadSummary(part, out.summary); });
}

}  // namespace json

codec::Json EncodeStatus(const WarmupStatus& status) {
  json::Writer out;
  out.Put("observedGeneration", status.observed_generation)
      .PutPart("conditions", json::ListOf(status.conditions, json::kConditionsMax, Encode))
      .Put("minAvailable", status.min_available);
  if (status.injection.has_value()) {
    out.Always("injection", json::EncodeInjection(*status.injection));
  }
  if (status.suspension.has_value()) {
    out.PutPart("suspension", json::EncodeSuspension(*status.suspension));
  }
  return out.PutPart("bundles", json::ListOf(status.bundles, json::kKeysMax, json::EncodeBundle))
      .PutPart("suspendedBundles", json::ListOf(status.suspended_bundles, kSuspendedBundlesMax,
                                                json::EncodeSuspendedBundle))
      .PutPart("builders", json::ListOf(status.builders, json::kKeysMax, json::EncodeBuilder))
      .PutPart("starts", json::EncodeStarts(status.starts))
      .PutPart("summary", json::EncodeSummary(status.summary))
      .Take();
}

}  // namespace cachewarm::api
