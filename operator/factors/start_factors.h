// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/bundle_status.h"
#include "lib/codec/json_fwd.h"

// The factors of a start: everything that is known about a pod and its node and that may decide
// whether an engine can use code which another pod compiled. Pure.
namespace cachewarm::factors {

// One pod on its node. `container` is an element of StartedContainersOf(); it may be null.
struct StartedPod {
  const codec::Json* container = nullptr;
  std::string image;
  int devices = 0;
  std::string container_name;
  std::string gpu_type;
  std::string cpu_class;
  std::string driver;  // version of the GPU driver; empty: no GPU, or not known
};

// Factors by name:
//   image imageID gpuType cpuClass driver devices container mountPath   the text itself
//   env/NAME         a variable of the container
//   args/--model     the words of command and args that follow a flag
//   args/3           the third word of command and args that follows no flag
//   envFrom          the ConfigMaps and Secrets that set further variables
// The values of the last four are hashed with the salt of the cluster ("h:..."), because they may
// be secrets that are easy to guess. A variable that Kubernetes sets for each pod or node has the
// value "pod:FIELD" or "node:FIELD". A variable that comes from a Secret or ConfigMap is compared
// by the name and key of its source, because the operator reads neither. Further names describe the
// factors themselves:
//   salt   identifies the salt; hashes under different salts are not comparable
//   rules  version of the rules by which factors are left out (relevance.h)
//   node   name of the node
//   cut    "1" if factors are missing because there were too many
using StartFactors = std::map<std::string, std::string, std::less<>>;

inline constexpr std::string_view kImageIdFactor = "imageID";
inline constexpr std::string_view kSaltFactor = "salt";
inline constexpr std::string_view kRulesFactor = "rules";
inline constexpr std::string_view kNodeFactor = "node";
inline constexpr std::string_view kCutFactor = "cut";
inline constexpr std::string_view kHashed = "h:";
inline constexpr std::string_view kPodPrefix = "pod:";
inline constexpr std::string_view kNodePrefix = "node:";

// Shortest salt that is accepted.
inline constexpr size_t kSaltBytesMin = 32;

// Returns the parts of the pod's containers that FactorsOf() reads, as a list: command, args, env
// and envFrom as in the spec, the mount path of the cache, and the image ID of the status. The
// operator keeps this list with a pod in place of the whole containers.
codec::Json StartedContainersOf(const codec::Json& pod);

// Name of the member of a kept pod that has this list.
inline constexpr std::string_view kStartedContainers = "startedContainers";

// Returns the container of this name in the list of a kept pod; null if there is none.
const codec::Json* FindStartedContainer(const codec::Json& pod, std::string_view container);

// Returns the factors that matter to a cache (relevance.h). Returns none if `salt` is shorter than
// kSaltBytesMin. `node` is the name of the pod's node. The result fits into status.bundles:
// at most api::kStartFactorsMax factors and kFactorBytesMax bytes; less relevant factors are
// left out first.
StartFactors FactorsOf(const StartedPod& pod, std::string_view node, std::string_view salt);

inline constexpr size_t kFactorBytesMax = 6144;  // of names and values

std::vector<api::StartFactor> Encode(const StartFactors& factors);
StartFactors Decode(const std::vector<api::StartFactor>& factors);

}  // namespace cachewarm::factors
