// SPDX-License-Identifier: Apache-2.0
#include "lib/api/kubernetes.h"

#include "lib/api/json/parts.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"

namespace cachewarm::api {
namespace json {
namespace {

using codec::Reader;

// Maximum length of each list that is read; the API server stores no list of this length.
constexpr size_t kServedItemsMax = 4096;

void ReadLabels(Reader& meta, std::string_view name, Labels& out) {
  Labels::Texts texts;
  meta.Read(name, texts);
  out = texts;
}

void ReadConditions(Reader& status, Node& out) {
  status.List("conditions", kServedItemsMax, [&](Reader& condition) {
    std::string type;
    std::string value;
    condition.Read("type", type).Read("status", value);
    if (type == "Ready" && value == "True") {
      out.ready = true;
      condition.Read("lastTransitionTime", out.ready_since);
    }
  });
}

void ReadNodeSpec(Reader& spec, Node& out) {
  spec.Read("unschedulable", out.unschedulable);
  spec.List("taints", kServedItemsMax, [&](Reader& item) {
    Taint& taint = out.taints.emplace_back();
    item.Read("key", taint.key).Read("value", taint.value).Read("effect", taint.effect);
  });
}

void ReadSliceDevice(Reader& device, SliceDevice& out) {
  device.Object("attributes", [&](Reader& attributes) {
    attributes.Object("productName", [&](Reader& value) { value.Read("string", out.product); });
    attributes.Object("cudaComputeCapability",
                      [&](Reader& value) { value.Read("version", out.compute_capability); });
  });
}

}  // namespace

void ReadMeta(Reader& object, ObjectMeta& out) {
  object.Object("metadata", [&](Reader& meta) {
    meta.Require("name")
        .Read("name", out.name)
        .Read("namespace", out.ns)
        .Read("uid", out.uid)
        .Read("resourceVersion", out.resource_version)
        .Read("generation", out.generation);
    ReadLabels(meta, "labels", out.labels);
    ReadLabels(meta, "annotations", out.annotations);
    meta.Read("creationTimestamp", out.created);
    out.deleting = meta.Has("deletionTimestamp");
  });
  object.Require("metadata");
}

void ReadResources(Reader& reader, std::string_view name, Resources& out) {
  reader.Object(name, [&](Reader& list) {
    for (const auto& [resource, quantity] : reader.Member(name)->items()) {
      // The API server writes strings; users and older clients may write numbers.
      const std::string text =
          quantity.is_string() ? quantity.get<std::string>() : codec::Json(quantity).dump();
      absl::StatusOr<int64_t> value = ParseQuantity(text, resource == "cpu");
      if (value.ok()) {
        out[resource] = *value;
      } else {
        list.Fail(resource, Message(value.status()));
      }
    }
  });
}

}  // namespace json

absl::StatusOr<ObjectMeta> DecodeMeta(const codec::Json& object) {
  codec::Reader reader(object, "");
  ObjectMeta out;
  json::ReadMeta(reader, out);
  if (!reader.status().ok()) {
    return reader.status();
  }
  return out;
}

absl::StatusOr<Node> DecodeNode(const codec::Json& object) {
  codec::Reader reader(object, "");
  Node out;
  json::ReadMeta(reader, out.meta);
  reader.Object("spec", [&](codec::Reader& spec) { json::ReadNodeSpec(spec, out); });
  reader.Object("status", [&](codec::Reader& status) {
    json::ReadConditions(status, out);
    json::ReadResources(status, "allocatable", out.allocatable);
    status.Object("nodeInfo", [&](codec::Reader& node) {
      node.Read("operatingSystem", out.os).Read("bootID", out.boot_id);
    });
  });
  if (!reader.status().ok()) {
    return reader.status();
  }
  return out;
}

absl::StatusOr<ResourceSlice> DecodeResourceSlice(const codec::Json& object) {
  codec::Reader reader(object, "");
  ResourceSlice out;
  reader.Object("spec", [&](codec::Reader& spec) {
    spec.Read("driver", out.driver).Read("nodeName", out.node);
    spec.Object("pool", [&](codec::Reader& pool) {
      pool.Read("name", out.pool).Read("generation", out.pool_generation);
    });
    spec.List("devices", json::kServedItemsMax, [&](codec::Reader& device) {
      json::ReadSliceDevice(device, out.devices.emplace_back());
    });
  });
  if (!reader.status().ok()) {
    return reader.status();
  }
  return out;
}

absl::StatusOr<Pod> DecodePod(std::shared_ptr<const codec::Json> object) {
  if (object == nullptr) {
    return absl::InvalidArgumentError("pod: expected an object");
  }
  codec::Reader reader(*object, "");
  Pod out;
  json::ReadPod(reader, out);
  if (!reader.status().ok()) {
    return reader.status();
  }
  out.object = std::move(object);
  return out;
}

}  // namespace cachewarm::api
