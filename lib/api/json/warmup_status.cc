// SPDX-License-Identifier: Apache-2.0
#include "lib/api/json/tables.h"

namespace cachewarm::api::json {
namespace {

constexpr Field<EnvVar> kEnvVar[] = {
    Required<&EnvVar::name>("name", kEnvName),
    Always<&EnvVar::value>("value", {.bytes = 1024}),
};

// The admission policy reads the first four fields without a check: if one were absent, the CEL
// error would prevent the injection.
constexpr Field<Injection> kInjection[] = {
    Always<&Injection::labels>("labels", kLabelMap),
    Always<&Injection::container>("container", kLabel),
    Always<&Injection::gate>("gate"),
    Always<&Injection::env, kEnvVar>("env", {.items = 128}),
    Optional<&Injection::node_selector>("nodeSelector", kLabelMap),
    Optional<&Injection::warm_revisions>("warmRevisions", {.items = 16, .bytes = kLabelBytes}),
};

constexpr Field<NodeIdentity> kNodeIdentity[] = {
    Required<&NodeIdentity::name>("name", kDnsSubdomain),
    Optional<&NodeIdentity::uid>("uid", {.bytes = kUidBytes}),
    Optional<&NodeIdentity::boot_id>("bootID", kHash),
};

constexpr Field<Suspension> kSuspension[] = {
    Optional<&Suspension::reason>("reason", kReason),
    Optional<&Suspension::message>("message", kMessage),
    Optional<&Suspension::template_hash>("templateHash", kHash),
    Optional<&Suspension::policy_hash>("policyHash", kHash),
    Optional<&Suspension::generation>("generation"),
    Optional<&Suspension::revision>("revision", kLabel),
    Optional<&Suspension::nodes, kNodeIdentity>("nodes", {.items = kSuspensionNodesMax}),
    Optional<&Suspension::suspended_time>("suspendedTime"),
    Optional<&Suspension::resumed_time>("resumedTime"),
};

constexpr Field<AdmittedContainer> kAdmittedContainer[] = {
    Optional<&AdmittedContainer::revision>("revision", kLabel),
    Optional<&AdmittedContainer::image>("image", kImage),
    Optional<&AdmittedContainer::devices>("devices", {.max = kDevicesMax}),
};

constexpr Field<HungStart> kHungStart[] = {
    Required<&HungStart::pod_uid>("podUID", kUid),
    Optional<&HungStart::pod>("pod", kName),
    Optional<&HungStart::node>("node", kName),
    Optional<&HungStart::group>("group", {.bytes = kGroupBytes}),
    Optional<&HungStart::started_time>("startedTime"),
    Optional<&HungStart::detected_time>("detectedTime"),
};

constexpr Field<SuspendedBundle> kSuspendedBundle[] = {
    Required<&SuspendedBundle::key>("key", kKey),
    Required<&SuspendedBundle::digest>("digest"),
    Optional<&SuspendedBundle::gpu_type>("gpuType", kGpuType),
    Optional<&SuspendedBundle::cpu_class>("cpuClass", kCpuClass),
    Optional<&SuspendedBundle::image>("image", kImage),
    Always<&SuspendedBundle::native>("native"),
    Optional<&SuspendedBundle::extends>("extends", {.items = kExtendedBundlesMax, .bytes = 71}),
    Optional<&SuspendedBundle::message>("message", kMessage),
    Optional<&SuspendedBundle::suspended_time>("suspendedTime"),
    Optional<&SuspendedBundle::hung_starts, kHungStart>("hungStarts", {.items = kHungStartsMax}),
};

constexpr Field<StartFactor> kStartFactor[] = {
    Required<&StartFactor::name>("name", {.bytes = 160}),
    Optional<&StartFactor::value>("value", {.bytes = 256}),
};

constexpr Field<BundleStatus> kBundleStatus[] = {
    Required<&BundleStatus::key>("key", kKey),
    Optional<&BundleStatus::gpu_type>("gpuType", kGpuType),
    Optional<&BundleStatus::cpu_class>("cpuClass", kCpuClass),
    Optional<&BundleStatus::image>("image", kImage),
    Optional<&BundleStatus::bytes>("bytes"),
    Optional<&BundleStatus::files>("files"),
    Always<&BundleStatus::native>("native"),
    Optional<&BundleStatus::compile_seconds>("compileSeconds"),
    Optional<&BundleStatus::builder_pod>("builderPod", kName),
    Optional<&BundleStatus::builder_node>("builderNode", kName),
    Optional<&BundleStatus::nodes_desired>("nodesDesired"),
    Optional<&BundleStatus::nodes_ready>("nodesReady"),
    Optional<&BundleStatus::nodes_failed>("nodesFailed"),
    Optional<&BundleStatus::nodes_waiting>("nodesWaiting"),
    Optional<&BundleStatus::message>("message", kMessage),
    Optional<&BundleStatus::digest>("digest"),
    Optional<&BundleStatus::published_time>("publishedTime"),
    Optional<&BundleStatus::harvested_time>("harvestedTime"),
    Optional<&BundleStatus::extends>("extends", {.items = kExtendedBundlesMax, .bytes = 71}),
    Optional<&BundleStatus::hung_starts, kHungStart>("hungStarts", {.items = kHungStartsMax}),
    Optional<&BundleStatus::factors, kStartFactor>("factors", {.items = kStartFactorsMax}),
};

constexpr Field<CapturedBundle> kCapturedBundle[] = {
    Required<&CapturedBundle::digest>("digest"),
    Optional<&CapturedBundle::bytes>("bytes"),
    Optional<&CapturedBundle::files>("files"),
    Always<&CapturedBundle::native>("native"),
    Optional<&CapturedBundle::compile_seconds>("compileSeconds"),
    Optional<&CapturedBundle::captured_time>("capturedTime"),
    Optional<&CapturedBundle::factors, kStartFactor>("factors", {.items = kStartFactorsMax}),
};

constexpr Field<ProofStatus> kProofStatus[] = {
    Optional<&ProofStatus::job>("job", kName),
    Optional<&ProofStatus::pod_uid>("podUID", {.bytes = kUidBytes}),
    Optional<&ProofStatus::started_time>("startedTime"),
    Optional<&ProofStatus::requested_time>("requestedTime"),
    Optional<&ProofStatus::answered_time>("answeredTime"),
};

constexpr Field<BuilderStatus> kBuilderStatus[] = {
    Required<&BuilderStatus::key>("key", kKey),
    Always<&BuilderStatus::state, kBuilderStateWords>("state"),
    Optional<&BuilderStatus::gpu_type>("gpuType", kGpuType),
    Optional<&BuilderStatus::cpu_class>("cpuClass", kCpuClass),
    Optional<&BuilderStatus::image>("image", kImage),
    Optional<&BuilderStatus::revision>("revision", kLabel),
    Optional<&BuilderStatus::settings_hash>("settingsHash", kHash),
    Optional<&BuilderStatus::pod_uid>("podUID", {.bytes = kUidBytes}),
    Optional<&BuilderStatus::pod_name>("podName", kName),
    Optional<&BuilderStatus::job>("job", kName),
    Optional<&BuilderStatus::node>("node", kName),
    Always<&BuilderStatus::attempt>("attempt", {.min = 1}),
    Optional<&BuilderStatus::bundles_suspended>("bundlesSuspended"),
    Optional<&BuilderStatus::gpu_seconds>("gpuSeconds"),
    Optional<&BuilderStatus::ranks>("ranks", {.items = kRanksMax, .bytes = kUidBytes}),
    Optional<&BuilderStatus::reason>("reason", kReason),
    Optional<&BuilderStatus::message>("message", kMessage),
    Optional<&BuilderStatus::elected_time>("electedTime"),
    Optional<&BuilderStatus::answered_time>("answeredTime"),
    Optional<&BuilderStatus::finished_time>("finishedTime"),
    Optional<&BuilderStatus::captured, kCapturedBundle>("captured"),
    Optional<&BuilderStatus::proof, kProofStatus>("proof"),
};

constexpr Field<HarvestStatus> kHarvestStatus[] = {
    Required<&HarvestStatus::key>("key", kKey),
    Optional<&HarvestStatus::number>("number"),
    Optional<&HarvestStatus::node>("node", kName),
    Optional<&HarvestStatus::pod_uid>("podUID", {.bytes = kUidBytes}),
    Optional<&HarvestStatus::run_as>("runAs", {.bytes = kRunAs.bytes}),
    Optional<&HarvestStatus::generation>("generation", {.bytes = kTreeName.bytes}),
    Optional<&HarvestStatus::units>("units"),
    Optional<&HarvestStatus::set>("set", kHash),
    Optional<&HarvestStatus::base_digest>("baseDigest"),
    Optional<&HarvestStatus::digest>("digest"),
    Optional<&HarvestStatus::started_time>("startedTime"),
    Optional<&HarvestStatus::finished_time>("finishedTime"),
    Optional<&HarvestStatus::reason>("reason", kReason),
    Optional<&HarvestStatus::message>("message", kMessage),
    Optional<&HarvestStatus::refusal>("refusal", kMessage),
    Optional<&HarvestStatus::harvested_sets>("harvestedSets",
                                             {.items = kHarvestedSetsMax, .bytes = kHash.bytes}),
};

constexpr Field<StartCounts> kStartCounts[] = {
    Optional<&StartCounts::builder>("builder"), Optional<&StartCounts::cold>("cold"),
    Optional<&StartCounts::hit>("hit"),         Optional<&StartCounts::partial>("partial"),
    Optional<&StartCounts::miss>("miss"),       Optional<&StartCounts::inert>("inert"),
    Optional<&StartCounts::hollow>("hollow"),   Optional<&StartCounts::unknown>("unknown"),
};

constexpr Field<GpuTypeStarts> kGpuTypeStarts[] = {
    Required<&GpuTypeStarts::gpu_type>("gpuType", kGpuType),
    Optional<&GpuTypeStarts::counts, kStartCounts>("counts"),
    Optional<&GpuTypeStarts::saved_seconds>("savedSeconds"),
    Optional<&GpuTypeStarts::lost_seconds>("lostSeconds"),
    Optional<&GpuTypeStarts::saved_gpu_seconds>("savedGPUSeconds"),
    Optional<&GpuTypeStarts::lost_gpu_seconds>("lostGPUSeconds"),
    Optional<&GpuTypeStarts::builder_gpu_seconds>("builderGPUSeconds"),
    Optional<&GpuTypeStarts::late_compiles>("lateCompiles"),
};

constexpr Field<LateReport> kLateReport[] = {
    Required<&LateReport::node>("node", kName),
    Optional<&LateReport::report>("report"),
};

constexpr Field<EngineStart> kEngineStart[] = {
    Always<&EngineStart::log, kEngineLogWords>("log"),
    Optional<&EngineStart::weights_seconds>("weightsSeconds"),
    Optional<&EngineStart::compile_seconds>("compileSeconds"),
    Optional<&EngineStart::graph_capture_seconds>("graphCaptureSeconds"),
    Optional<&EngineStart::init_seconds>("initSeconds"),
    Optional<&EngineStart::kv_cache_tokens>("kvCacheTokens"),
};

constexpr Field<StartSample> kStartSample[] = {
    Required<&StartSample::pod_uid>("podUID", kUid),
    Always<&StartSample::result, kStartResultWords>("result"),
    Optional<&StartSample::pod>("pod", kName),
    Optional<&StartSample::node>("node", kName),
    Optional<&StartSample::key>("key", {.bytes = kKey.bytes}),
    Optional<&StartSample::gpu_type>("gpuType", kGpuType),
    Optional<&StartSample::start_seconds>("startSeconds"),
    Optional<&StartSample::hold_seconds>("holdSeconds"),
    Optional<&StartSample::compile_seconds>("compileSeconds"),
    Optional<&StartSample::compiled_after_seconds>("compiledAfterSeconds"),
    Optional<&StartSample::saved_seconds>("savedSeconds"),
    Optional<&StartSample::devices>("devices"),
    Optional<&StartSample::cause>("cause", {.bytes = 640}),
    Optional<&StartSample::engine, kEngineStart>("engine"),
};

constexpr Field<Starts> kStarts[] = {
    Optional<&Starts::counting_started_time>("countingStartedTime"),
    Optional<&Starts::counts, kStartCounts>("counts"),
    Optional<&Starts::gpu_types, kGpuTypeStarts>("gpuTypes", {.items = kGpuTypeStartsMax}),
    Optional<&Starts::hold_median_seconds>("holdMedianSeconds"),
    Optional<&Starts::cold_median_seconds>("coldMedianSeconds"),
    Optional<&Starts::warm_median_seconds>("warmMedianSeconds"),
    Optional<&Starts::saved_seconds>("savedSeconds"),
    Optional<&Starts::lost_seconds>("lostSeconds"),
    Optional<&Starts::recent, kStartSample>("recent", {.items = 64}),
    Optional<&Starts::counted_pod_uids>("countedPodUIDs", {.items = 256, .bytes = kUidBytes}),
    Optional<&Starts::late_reports, kLateReport>("lateReports", {.items = kLateReportsMax}),
};

constexpr Field<Summary> kSummary[] = {
    Optional<&Summary::types>("types", kColumn), Optional<&Summary::nodes>("nodes", kColumn),
    Optional<&Summary::hit>("hit", kColumn),     Optional<&Summary::partial>("partial", kColumn),
    Optional<&Summary::saved>("saved", kColumn),
};

constexpr Field<WarmupStatus> kWarmupStatus[] = {
    Optional<&WarmupStatus::observed_generation>("observedGeneration"),
    Optional<&WarmupStatus::conditions, kCondition>("conditions", {.items = kConditionsMax}),
    Optional<&WarmupStatus::min_available>("minAvailable"),
    Optional<&WarmupStatus::injection, kInjection>("injection"),
    Optional<&WarmupStatus::suspension, kSuspension>("suspension"),
    Optional<&WarmupStatus::admitted, kAdmittedContainer>("admitted"),
    Optional<&WarmupStatus::bundles, kBundleStatus>("bundles", {.items = kKeysMax}),
    Optional<&WarmupStatus::suspended_bundles, kSuspendedBundle>("suspendedBundles",
                                                                 {.items = kSuspendedBundlesMax}),
    Optional<&WarmupStatus::builders, kBuilderStatus>("builders", {.items = kKeysMax}),
    Optional<&WarmupStatus::harvests, kHarvestStatus>("harvests", {.items = kKeysMax}),
    Optional<&WarmupStatus::starts, kStarts>("starts"),
    Optional<&WarmupStatus::summary, kSummary>("summary"),
};

}  // namespace

Rows<WarmupStatus> WarmupStatusFields() {
  return kWarmupStatus;
}

}  // namespace cachewarm::api::json
