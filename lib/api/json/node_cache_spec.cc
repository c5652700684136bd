// SPDX-License-Identifier: Apache-2.0
#include "lib/api/json/tables.h"

namespace cachewarm::api::json {
namespace {

constexpr Limit kQualifiedName{.bytes = kNameBytes + 1 + kLabelBytes};  // "nvidia.com/gpu"
constexpr Limit kDeviceAttribute{.bytes = kDeviceAttributeBytes};

constexpr Field<OfferedDevices> kOfferedDevices[] = {
    Required<&OfferedDevices::resource>("resource", kQualifiedName),
    Always<&OfferedDevices::count>("count"),
};

constexpr Field<NodeLabel> kNodeLabel[] = {
    Required<&NodeLabel::name>("name", kQualifiedName),
    Optional<&NodeLabel::value>("value", kLabel),
};

constexpr Field<PublishedDevices> kPublishedDevices[] = {
    Required<&PublishedDevices::driver>("driver", kLabel),
    Optional<&PublishedDevices::product>("product", kDeviceAttribute),
    Optional<&PublishedDevices::compute_capability>("computeCapability", kDeviceAttribute),
    Always<&PublishedDevices::count>("count"),
};

constexpr Field<NodeOffer> kNodeOffer[] = {
    Optional<&NodeOffer::devices, kOfferedDevices>("devices", {.items = kOfferedDevicesMax}),
    Optional<&NodeOffer::labels, kNodeLabel>("labels", {.items = 16}),
    Optional<&NodeOffer::published, kPublishedDevices>("publishedDevices",
                                                       {.items = kPublishedDevicesMax}),
};

constexpr Field<WantedBundle> kWantedBundle[] = {
    Required<&WantedBundle::key>("key", kKey),
    Required<&WantedBundle::digest>("digest"),
    Optional<&WantedBundle::bytes>("bytes"),
};

void ReadRetain(const Rule& rule, codec::Reader& reader, WantedWarmup& out) {
  ReadValue(rule, reader, out.retain);
}

// Omits the default, because the API server rejects the field while its CRD is an older one.
void WriteRetain(const Rule& rule, const WantedWarmup& warmup, Writer& out) {
  if (warmup.retain != kRetainDefault) {
    out.Always(rule.name, warmup.retain);
  }
}

// Namespace, name, uid and run-as names become a path on the node.
constexpr Field<WantedWarmup> kWantedWarmup[] = {
    Required<&WantedWarmup::uid>("uid", kUid),
    Required<&WantedWarmup::ns>("namespace", kDnsLabel),
    Required<&WantedWarmup::name>("name", kDnsSubdomain),
    Optional<&WantedWarmup::run_as>("runAs", {.items = kRunAsMax,
                                              .bytes = kRunAs.bytes,
                                              .pattern = kRunAs.pattern,
                                              .words = kRunAs.words}),
    Optional<&WantedWarmup::caches, kCacheChoice>("caches", {.items = kCachesMax}),
    Optional<&WantedWarmup::bundles, kWantedBundle>("bundles", {.items = kNodeBundlesMax}),
    Optional<&WantedWarmup::renew>("renew"),
    Optional<&WantedWarmup::renewed_for>("renewedFor", {.items = 16, .bytes = 80}),
    Optional<&WantedWarmup::fetch_priority>("fetchPriority", {.max = kFetchPriorityMax}),
    Optional<&WantedWarmup::fetch_granted_time>("fetchGrantedTime"),
    Custom<WantedWarmup>(
        {.name = "retain", .limit = {.max = kRetainMax}, .shape = ShapeOf<int, kNoTable>},
        &ReadRetain, &WriteRetain),
    Optional<&WantedWarmup::late_counted>("lateCompilesCounted"),
    Optional<&WantedWarmup::harvest>("harvest"),
};

constexpr Field<KeyFactors> kKeyFactors[] = {
    Optional<&KeyFactors::gpu_type>("gpuType", kGpuType),
    Optional<&KeyFactors::cpu_class>("cpuClass", kCpuClass),
    Optional<&KeyFactors::image>("image", kImage),
    Optional<&KeyFactors::devices>("devices", {.max = kDevicesMax}),
    Optional<&KeyFactors::container>("container", kLabel),
};

constexpr Field<CaptureRequest> kCaptureRequest[] = {
    Required<&CaptureRequest::id>("id", kUid),
    Required<&CaptureRequest::warmup_uid>("warmupUID", kUid),
    Required<&CaptureRequest::pod_uid>("podUID", kUid),
    Required<&CaptureRequest::run_as>("runAs", kRunAs),
    Required<&CaptureRequest::key>("key", kKey),
    Optional<&CaptureRequest::factors, kKeyFactors>("factors"),
    Always<&CaptureRequest::settle_seconds>("settleSeconds", {.min = 1, .max = kSettleSecondsMax}),
    Optional<&CaptureRequest::started_time>("startedTime"),
    Optional<&CaptureRequest::ready_time>("readyTime"),
    Optional<&CaptureRequest::base_digest>("baseDigest"),
    Optional<&CaptureRequest::grouped>("grouped"),
    Optional<&CaptureRequest::generation>("generation", kTreeName),
};

constexpr Field<StartWindow> kStartWindow[] = {
    Required<&StartWindow::pod_uid>("podUID", kUid),
    Required<&StartWindow::warmup_uid>("warmupUID", kUid),
    Required<&StartWindow::run_as>("runAs", kRunAs),
    Optional<&StartWindow::started_time>("startedTime"),
    Optional<&StartWindow::ready_time>("readyTime"),
};

constexpr Field<NodeCacheSpec> kNodeCacheSpec[] = {
    Optional<&NodeCacheSpec::node, kNodeOffer>("node"),
    Optional<&NodeCacheSpec::warmups, kWantedWarmup>("warmups", {.items = kNodeWarmupsMax}),
    Optional<&NodeCacheSpec::captures, kCaptureRequest>("captures", {.items = kCapturesMax}),
    Optional<&NodeCacheSpec::starts, kStartWindow>("starts", {.items = kStartsMax}),
    Optional<&NodeCacheSpec::evict, kEvictableTree>("evict", {.items = kEvictionsMax}),
};

}  // namespace

Rows<NodeCacheSpec> NodeCacheSpecFields() {
  return kNodeCacheSpec;
}

}  // namespace cachewarm::api::json
