// SPDX-License-Identifier: Apache-2.0
#include "lib/api/json/checks.h"
#include "lib/api/json/limits.h"
#include "lib/api/json/parts.h"
#include "lib/api/json/writer.h"

namespace cachewarm::api {
namespace json {
namespace {

using codec::Json;
using codec::Reader;

void ReadOffer(Reader& reader, NodeOffer& out) {
  reader.List("devices", kOfferedDevicesMax, [&](Reader& item) {
    OfferedDevices& devices = out.devices.emplace_back();
    item.Require("resource")
        .Read("resource", devices.resource, kNameBytes + kLabelBytes + 1)
        .Read("count", devices.count, 0, kCountMax);
  });
  reader.List("labels", kNodeLabelsMax, [&](Reader& item) {
    NodeLabel& label = out.labels.emplace_back();
    item.Require("name")
        .Read("name", label.name, kNameBytes + kLabelBytes + 1)
        .Read("value", label.value, kLabelBytes);
  });
  reader.List("publishedDevices", kPublishedDevicesMax, [&](Reader& item) {
    PublishedDevices& devices = out.published.emplace_back();
    item.Require("driver")
        .Read("driver", devices.driver, kLabelBytes)
        .Read("product", devices.product, kDeviceAttributeBytes)
        .Read("computeCapability", devices.compute_capability, kDeviceAttributeBytes)
        .Read("count", devices.count, 0, kCountMax);
  });
}

Json EncodeOffer(const NodeOffer& offer) {
  const auto devices = [](const OfferedDevices& each) {
    return Writer().Always("resource", each.resource).Always("count", each.count).Take();
  };
  const auto label = [](const NodeLabel& each) {
    return Writer().Always("name", each.name).Put("value", each.value, kLabelBytes).Take();
  };
  const auto published = [](const PublishedDevices& each) {
    return Writer()
        .Always("driver", each.driver)
        .Put("product", each.product, kDeviceAttributeBytes)
        .Put("computeCapability", each.compute_capability, kDeviceAttributeBytes)
        .Always("count", each.count)
        .Take();
  };
  return Writer()
      .PutPart("devices", ListOf(offer.devices, kOfferedDevicesMax, devices))
      .PutPart("labels", ListOf(offer.labels, kNodeLabelsMax, label))
      .PutPart("publishedDevices", ListOf(offer.published, kPublishedDevicesMax, published))
      .Take();
}

void ReadWantedBundle(Reader& reader, WantedBundle& out) {
  ReadChecked(reader, "key", out.key, kKey);
  reader.Require("digest").Read("bytes", out.bytes, 0);
  ReadDigest(reader, "digest", out.digest);
}

Json EncodeWantedBundle(const WantedBundle& bundle) {
  return Writer()
      .Always("key", bundle.key)
      .Always("digest", bundle.digest.ToString())
      .Put("bytes", bundle.bytes)
      .Take();
}

// Checks namespace, name, uid and run-as names strictly: they become a path on the node.
void ReadWantedWarmup(Reader& reader, WantedWarmup& out) {
  ReadChecked(reader, "uid", out.uid, kUid);
  ReadChecked(reader, "namespace", out.ns, kDnsLabel);
  ReadChecked(reader, "name", out.name, kDnsSubdomain);
  reader.Read("runAs", out.run_as, kRunAsMax);
  for (const std::string& run_as : out.run_as) {
    if (!IsRunAs(run_as)) {
      reader.Fail("runAs", kRunAs.words);
    }
  }
  ReadCaches(reader, out.caches);
  reader.List("bundles", kNodeBundlesMax,
              [&](Reader& item) { ReadWantedBundle(item, out.bundles.emplace_back()); });
  reader.Read("renew", out.renew, 0, kCountMax)
      .Read("renewedFor", out.renewed_for, kRenewedForMax)
      .Read("fetchPriority", out.fetch_priority, kFetchPriorityNone, kFetchPriorityMax)
      .Read("retain", out.retain, 0, kRetainMax);
  ReadTime(reader, "fetchGrantedTime", out.fetch_granted_time);
}

Json EncodeWantedWarmup(const WantedWarmup& warmup) {
  Writer out;
  out.Always("uid", warmup.uid)
      .Always("namespace", warmup.ns)
      .Always("name", warmup.name)
      .Put("runAs", warmup.run_as, kRunAsMax)
      .PutPart("caches", EncodeCaches(warmup.caches))
      .PutPart("bundles", ListOf(warmup.bundles, kNodeBundlesMax, EncodeWantedBundle))
      .Put("renew", int64_t{warmup.renew})
      .Put("renewedFor", warmup.renewed_for, kRenewedForMax)
      .Put("fetchPriority", int64_t{warmup.fetch_priority})
      .Put("fetchGrantedTime", warmup.fetch_granted_time);
  if (warmup.retain != kRetainDefault) {
    out.Always("retain", warmup.retain);
  }
  return out.Take();
}

void ReadFactors(Reader& reader, KeyFactors& out) {
  reader.Read("gpuType", out.gpu_type, kGpuTypeBytes)
      .Read("cpuClass", out.cpu_class, kCpuClassBytes)
      .Read("image", out.image, kImageBytes)
      .Read("devices", out.devices, 0, kDevicesMax)
      .Read("container", out.container, kLabelBytes);
}

Json EncodeFactors(const KeyFactors& factors) {
  return Writer()
      .Put("gpuType", factors.gpu_type, kGpuTypeBytes)
      .Put("cpuClass", factors.cpu_class, kCpuClassBytes)
      .Put("image", factors.image, kImageBytes)
      .Put("devices", int64_t{factors.devices})
      .Put("container", factors.container, kLabelBytes)
      .Take();
}

void ReadCapture(Reader& reader, CaptureRequest& out) {
  ReadChecked(reader, "id", out.id, kUid);
  ReadChecked(reader, "warmupUID", out.warmup_uid, kUid);
  ReadChecked(reader, "podUID", out.pod_uid, kUid);
  ReadChecked(reader, "runAs", out.run_as, kRunAs);
  ReadChecked(reader, "key", out.key, kKey);
  reader.Object("factors", [&](Reader& factors) { ReadFactors(factors, out.factors); });
  reader.Read("settleSeconds", out.settle_seconds, 1, kSettleSecondsMax);
  ReadTime(reader, "startedTime", out.started_time);
  ReadTime(reader, "readyTime", out.ready_time);
  ReadDigest(reader, "baseDigest", out.base_digest);
  reader.Read("grouped", out.grouped);
}

Json EncodeCapture(const CaptureRequest& capture) {
  Writer out;
  out.Always("id", capture.id)
      .Always("warmupUID", capture.warmup_uid)
      .Always("podUID", capture.pod_uid)
      .Always("runAs", capture.run_as)
      .Always("key", capture.key)
      .PutPart("factors", EncodeFactors(capture.factors))
      .Always("settleSeconds", capture.settle_seconds)
      .Put("startedTime", capture.started_time)
      .Put("readyTime", capture.ready_time)
      .Put("baseDigest", capture.base_digest);
  if (capture.grouped) {
    out.Always("grouped", true);
  }
  return out.Take();
}

void ReadWindow(Reader& reader, StartWindow& out) {
  ReadChecked(reader, "podUID", out.pod_uid, kUid);
  ReadChecked(reader, "warmupUID", out.warmup_uid, kUid);
  ReadChecked(reader, "runAs", out.run_as, kRunAs);
  ReadTime(reader, "startedTime", out.started_time);
  ReadTime(reader, "readyTime", out.ready_time);
}

Json EncodeWindow(const StartWindow& window) {
  return Writer()
      .Always("podUID", window.pod_uid)
      .Always("warmupUID", window.warmup_uid)
      .Always("runAs", window.run_as)
      .Put("startedTime", window.started_time)
      .Put("readyTime", window.ready_time)
      .Take();
}

}  // namespace

void ReadSpec(Reader& reader, NodeCacheSpec& out) {
  reader.Object("node", [&](Reader& node) { ReadOffer(node, out.node); });
  reader.List("warmups", kNodeWarmupsMax,
              [&](Reader& item) { ReadWantedWarmup(item, out.warmups.emplace_back()); });
  reader.List("captures", kCapturesMax,
              [&](Reader& item) { ReadCapture(item, out.captures.emplace_back()); });
  reader.List("starts", kStartsMax,
              [&](Reader& item) { ReadWindow(item, out.starts.emplace_back()); });
  reader.List("evict", kEvictionsMax,
              [&](Reader& item) { ReadEvictable(item, out.evict.emplace_back()); });
}

void ReadEvictable(Reader& reader, EvictableTree& out) {
  ReadChecked(reader, "generation", out.generation, kTreeName);
  if (reader.Has("warmupUID")) {
    ReadChecked(reader, "warmupUID", out.warmup_uid, kUid);
  }
  ReadTime(reader, "unlinkedTime", out.unlinked_time);
}

Json EncodeEvictable(const EvictableTree& tree) {
  return Writer()
      .Always("generation", tree.generation)
      .Put("warmupUID", tree.warmup_uid, kUidBytes)
      .Put("unlinkedTime", tree.unlinked_time)
      .Take();
}

}  // namespace json

codec::Json EncodeSpec(const NodeCacheSpec& spec) {
  using json::ListOf;
  return json::Writer()
      .PutPart("node", json::EncodeOffer(spec.node))
      .PutPart("warmups", ListOf(spec.warmups, json::kNodeWarmupsMax, json::EncodeWantedWarmup))
      .PutPart("captures", ListOf(spec.captures, json::kCapturesMax, json::EncodeCapture))
      .PutPart("starts", ListOf(spec.starts, json::kStartsMax, json::EncodeWindow))
      .PutPart("evict", ListOf(spec.evict, json::kEvictionsMax, json::EncodeEvictable))
      .Take();
}

}  // namespace cachewarm::api
