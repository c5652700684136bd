// SPDX-License-Identifier: Apache-2.0
#include "fmt/format.h"
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

void ReadRoot(Reader& reader, RootStatus& out) {
  reader.Read("path", out.path, kPathBytes)
      .Read("writable", out.writable)
      .Read("executable", out.executable)
      .Read("usedBytes", out.used_bytes, 0)
      .Read("limitBytes", out.limit_bytes, 0)
      .Read("freeBytes", out.free_bytes, 0)
      .Read("evictableBytes", out.evictable_bytes, 0)
      .Read("evictedBytes", out.evicted_bytes, 0)
      .Read("message", out.message, size_t{4} * kMessageBytes);
}

Json EncodeRoot(const RootStatus& root) {
  return Writer()
      .Put("path", root.path, kPathBytes)
      .Always("writable", root.writable)
      .Always("executable", root.executable)
      .Put("usedBytes", root.used_bytes)
      .Put("limitBytes", root.limit_bytes)
      .Put("freeBytes", root.free_bytes)
      .Put("evictableBytes", root.evictable_bytes)
      .Put("evictedBytes", root.evicted_bytes)
      .Put("message", root.message, kMessageBytes)
      .Take();
}

void ReadNode(Reader& reader, NodeStatus& out) {
  reader.Read("gpuType", out.gpu_type, kGpuTypeBytes)
      .Read("cpuClass", out.cpu_class, kCpuClassBytes)
      .Read("devices", out.devices, 0, kDevicesMax)
      .Read("driver", out.driver, kReasonBytes)
      .Read("agentVersion", out.agent_version, kReasonBytes)
      .Read("extendsBundles", out.extends_bundles)
      .Object("root", [&](Reader& root) { ReadRoot(root, out.root); });
}

Json EncodeNode(const NodeStatus& node) {
  Writer out;
  out.Put("gpuType", node.gpu_type, kGpuTypeBytes)
      .Put("cpuClass", node.cpu_class, kCpuClassBytes)
      .Put("devices", int64_t{node.devices})
      .Put("driver", node.driver, kReasonBytes)
      .Put("agentVersion", node.agent_version, kReasonBytes);
  if (node.extends_bundles) {
    out.Always("extendsBundles", true);
  }
  if (node.root != RootStatus{}) {
    out.Always("root", EncodeRoot(node.root));
  }
  return out.Take();
}

// Returns a text like "512Mi" or "1.4Gi", because a printer column cannot format a number.
std::string HumanBytes(int64_t bytes) {
  if (bytes < 1024) {
    return fmt::format("{}", bytes);
  }
  double value = static_cast<double>(bytes);
  std::string_view unit;
  for (std::string_view next : {"Ki", "Mi", "Gi", "Ti", "Pi"}) {
    if (value < 1023.5) {
      break;
    }
    value /= 1024;
    unit = next;
  }
  return value < 9.95 ? fmt::format("{:.1f}{}", value, unit) : fmt::format("{:.0f}{}", value, unit);
}

Json EncodeSummary(const RootStatus& root) {
  if (root == RootStatus{}) {
    return nullptr;
  }
  return Writer()
      .Always("used", HumanBytes(root.used_bytes))
      .Always("free", HumanBytes(root.free_bytes))
      .Take();
}

void ReadBundle(Reader& reader, NodeBundle& out) {
  reader.Require("digest");
  ReadDigest(reader, "digest", out.digest);
  ReadWord(reader, "state", kBundleStateWords, out.state);
  reader.Read("bytesDone", out.bytes_done, 0)
      .Read("fetchSeconds", out.fetch_seconds)
      .Read("reason", out.reason, kReasonBytes)
      .Read("message", out.message, size_t{4} * kMessageBytes);
}

Json EncodeNodeBundle(const NodeBundle& bundle) {
  return Writer()
      .Always("digest", bundle.digest.ToString())
      .Always("state", Name(bundle.state))
      .Put("bytesDone", bundle.bytes_done)
      .Put("fetchSeconds", bundle.fetch_seconds)
      .Put("reason", bundle.reason, kReasonBytes)
      .Put("message", bundle.message, kMessageBytes)
      .Take();
}

void ReadWarmup(Reader& reader, NodeWarmup& out) {
  ReadChecked(reader, "uid", out.uid, kUid);
  reader.Read("prepared", out.prepared, kRunAsMax)
      .Read("generation", out.generation, kReasonBytes)
      .List("bundles", kNodeBundlesMax,
            [&](Reader& item) { ReadBundle(item, out.bundles.emplace_back()); })
      .Read("message", out.message, size_t{4} * kMessageBytes);
}

Json EncodeWarmup(const NodeWarmup& warmup) {
  return Writer()
      .Always("uid", warmup.uid)
      .Put("prepared", warmup.prepared, kRunAsMax)
      .Put("generation", warmup.generation, kReasonBytes)
      .PutPart("bundles", ListOf(warmup.bundles, kNodeBundlesMax, EncodeNodeBundle))
      .Put("message", warmup.message, kMessageBytes)
      .Take();
}

void ReadLeftBehind(Reader& reader, LeftBehind& out) {
  reader.Read("files", out.files, 0)
      .Read("bytes", out.bytes, 0)
      .Read("directories", out.directories, kLeftBehindDirectoriesMax);
}

Json EncodeLeftBehind(const LeftBehind& left) {
  return left.files == 0 ? Json()
                         : Writer()
                               .Put("files", left.files)
                               .Put("bytes", left.bytes)
                               .PutPart("directories",
                                        ListOf(left.directories, kLeftBehindDirectoriesMax,
                                               [](const std::string& directory) {
                                                 return Json(Cut(directory, kLeftBehindNameBytes));
                                               }))
                               .Take();
}

void ReadCapture(Reader& reader, CaptureStatus& out) {
  ReadChecked(reader, "id", out.id, kUid);
  ReadWord(reader, "state", kCaptureStateWords, out.state);
  ReadDigest(reader, "digest", out.digest);
  reader.Read("bytes", out.bytes, 0)
      .Read("files", out.files, 0, kCountMax)
      .Read("native", out.native)
      .Read("compileSeconds", out.compile_seconds)
      .Object("leftBehind", [&out](Reader& each) { ReadLeftBehind(each, out.left_behind); })
      .Read("reason", out.reason, kReasonBytes)
      .Read("message", out.message, size_t{4} * kMessageBytes);
}

Json EncodeCaptureStatus(const CaptureStatus& capture) {
  return Writer()
      .Always("id", capture.id)
      .Always("state", Name(capture.state))
      .Put("digest", capture.digest)
      .Put("bytes", capture.bytes)
      .Put("files", int64_t{capture.files})
      .Always("native", capture.native)
      .Put("compileSeconds", capture.compile_seconds)
      .PutPart("leftBehind", EncodeLeftBehind(capture.left_behind))
      .Put("reason", capture.reason, kReasonBytes)
      .Put("message", capture.message, kMessageBytes)
      .Take();
}

void ReadEvidence(Reader& reader, StartEvidence& out) {
  ReadChecked(reader, "podUID", out.pod_uid, kUid);
  ReadWord(reader, "result", kStartResultWords, out.result);
  reader.Read("opened", out.opened, 0, kCountMax)
      .Read("written", out.written, 0, kCountMax)
      .Read("nativeBuilt", out.native_built, 0, kCountMax)
      .Read("compileSeconds", out.compile_seconds);
}

Json EncodeEvidence(const StartEvidence& evidence) {
  return Writer()
      .Always("podUID", evidence.pod_uid)
      .Always("result", Name(evidence.result))
      .Put("opened", int64_t{evidence.opened})
      .Put("written", int64_t{evidence.written})
      .Put("nativeBuilt", int64_t{evidence.native_built})
      .Put("compileSeconds", evidence.compile_seconds)
      .Take();
}

}  // namespace

void ReadStatus(Reader& reader, NodeCacheStatus& out) {
  reader.Object("node", [&](Reader& node) { ReadNode(node, out.node); });
  reader.List("conditions", kConditionsMax,
              [&](Reader& item) { Decode(item, out.conditions.emplace_back()); });
  ReadTime(reader, "heartbeatTime", out.heartbeat);
  reader.List("warmups", kNodeWarmupsMax,
              [&](Reader& item) { ReadWarmup(item, out.warmups.emplace_back()); });
  reader.List("captures", kCapturesMax,
              [&](Reader& item) { ReadCapture(item, out.captures.emplace_back()); });
  reader.List("starts", kStartsMax,
              [&](Reader& item) { ReadEvidence(item, out.starts.emplace_back()); });
  reader.List("evictable", kEvictionsMax,
              [&](Reader& item) { ReadEvictable(item, out.evictable.emplace_back()); });
}

}  // namespace json

codec::Json EncodeStatus(const NodeCacheStatus& status) {
  using json::ListOf;
  return json::Writer()
      .PutPart("node", json::EncodeNode(status.node))
      .PutPart("conditions", ListOf(status.conditions, json::kConditionsMax, Encode))
      .PutPart("summary", json::EncodeSummary(status.node.root))
      .Put("heartbeatTime", status.heartbeat)
      .PutPart("warmups", ListOf(status.warmups, json::kNodeWarmupsMax, json::EncodeWarmup))
      .PutPart("captures", ListOf(status.captures, json::kCapturesMax, json::EncodeCaptureStatus))
      .PutPart("starts", ListOf(status.starts, json::kStartsMax, json::EncodeEvidence))
      .PutPart("evictable", ListOf(status.evictable, json::kEvictionsMax, json::EncodeEvictable))
      .Take();
}

}  // namespace cachewarm::api
