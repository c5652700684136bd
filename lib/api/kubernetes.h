// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "lib/api/labels.h"
#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"

// The Kubernetes types that cachewarm reads, reduced to the fields that it uses. Decoding ignores
// unknown fields, gives absent ones the API's defaults, and fails on wrong types with
// INVALID_ARGUMENT.
namespace cachewarm::api {

struct ObjectMeta {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  int64_t generation = 0;
  WallTime created{};
  bool deleting = false;
  Labels labels;
  Labels annotations;
};

// Resource quantities by resource name: "cpu" in milli-units, "memory" in bytes, "pods" and devices
// as counts. A btree_map, because the operator keeps one for every node and pod, and a std::map
// needs twice the memory.
using Resources = absl::btree_map<std::string, int64_t>;

struct Taint {
  std::string key;
  std::string value;
  std::string effect;
};

struct Toleration {
  std::string key;  // empty, with op Exists: tolerates every taint
  std::string op;   // Equal, Exists
  std::string value;
  std::string effect;  // empty: tolerates every effect
  friend bool operator==(const Toleration&, const Toleration&) = default;
};

struct Node {
  ObjectMeta meta;
  bool ready = false;
  WallTime ready_since{};  // when the node became Ready, by the node's clock; zero if not Ready
  bool unschedulable = false;
  std::string os = "linux";
  std::string boot_id;  // the boot ID or its first bytes: enough to detect a reboot
  std::vector<Taint> taints;
  Resources allocatable;
};

// One device of a ResourceSlice, with the attributes that NVIDIA's driver publishes
// (github.com/NVIDIA/k8s-dra-driver-gpu, cmd/gpu-kubelet-plugin/deviceinfo.go).
struct SliceDevice {
  std::string product;             // productName
  std::string compute_capability;  // cudaComputeCapability
};

// A ResourceSlice (resource.k8s.io/v1): a part of the devices that one driver has on one node.
struct ResourceSlice {
  std::string driver;
  std::string node;  // empty if the devices belong to no single node
  std::string pool;
  int64_t pool_generation = 0;  // slices of a pool with a lower generation are out of date
  std::vector<SliceDevice> devices;
};

struct ContainerStatus {
  std::string name;
  bool ready = false;
  bool running = false;
  int restarts = 0;
  WallTime started_time{};  // start of the running or terminated instance; zero if waiting
  bool terminated = false;
  WallTime ended_time{};
  int exit_code = 0;
  std::string message;  // reason and message of the waiting or terminated state
};

struct Pod {
  ObjectMeta meta;
  std::string owner_kind;  // kind and name of the controlling owner
  std::string owner_name;
  std::string node;  // spec.nodeName
  std::vector<std::string> gates;
  std::map<std::string, std::string> node_selector;
  std::string ip;     // status.podIP
  std::string phase;  // status.phase: Pending, Running, Succeeded, Failed, Unknown
  bool ready = false;
  bool containers_ready = false;
  bool may_end = false;  // restartPolicy is not Always: containers may complete
  WallTime ready_time{};
  WallTime containers_ready_time{};
  std::vector<ContainerStatus> containers;
  Resources requests;  // requests of the whole pod, as the scheduler counts them
  // The whole object, for fields that only operator/render reads (affinity, containers).
  std::shared_ptr<const codec::Json> object;
};

// Returns Pod::may_end for a value of spec.restartPolicy; "" is the default, Always.
bool MayEnd(std::string_view restart_policy);
// True in the phases Succeeded and Failed: no container runs again, and no resources are in use.
bool HasEnded(const Pod& pod);

absl::StatusOr<ObjectMeta> DecodeMeta(const codec::Json& object);
absl::StatusOr<Node> DecodeNode(const codec::Json& object);
absl::StatusOr<ResourceSlice> DecodeResourceSlice(const codec::Json& object);
absl::StatusOr<Pod> DecodePod(std::shared_ptr<const codec::Json> object);

// Returns the requests that the scheduler counts for a pod with this PodSpec, and for one container
// of it. A limit replaces a missing request. After a quantity that cannot be read, the rest of its
// list does not count: the API server rejects such a pod.
Resources PodRequests(const codec::Json& pod_spec);
Resources ContainerRequests(const codec::Json& container);

// Parses a Kubernetes resource.Quantity. With `milli` (for cpu), returns thousandths of the unit;
// otherwise whole units, such as bytes.
absl::StatusOr<int64_t> ParseQuantity(std::string_view text, bool milli);

}  // namespace cachewarm::api
