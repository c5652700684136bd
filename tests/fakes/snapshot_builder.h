// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/codec/json_value.h"
#include "operator/plan/decide.h"
#include "operator/plan/values.h"

// Snapshots for the tests of operator/plan: a Deployment "llama" of namespace "models" with one
// container "server", and the nodes and pods that a test adds. Everything is mutable until Build().
namespace cachewarm::fakes {

inline constexpr const char* kAvx512 = "x86-64-v4/amd-25-17/00000001";
inline constexpr const char* kAvx2 = "x86-64-v3/amd-23-49/00000002";
inline constexpr const char* kH100 = "nvidia/h100-80gb-hbm3/sm_90";

WallTime At(int seconds);  // after 2026-01-01T00:00:00Z

struct NodeSetup {
  std::string name;
  std::string gpu_type = "cpu";
  std::string cpu_class = kAvx512;
  std::map<std::string, std::string> labels;
  int gpus = 0;
  int pods = 10;  // free pod slots
  bool agent = true;
  bool prepared = true;
  bool has_facts = true;
};

struct PodSetup {
  std::string name;
  std::string node;  // empty: not bound
  bool held = false;
  bool injected = true;
  std::string revision = "r1";
  std::string image = "server:1";
  std::string run_as = "image";
  int gpus = 0;
  int created = 0;             // seconds, as At()
  std::optional<int> started;  // the container runs since
  std::optional<int> ready;
  std::optional<int> exit_code;
  std::optional<int> ended;  // with an exit code
  int restarts = 0;
  bool deleting = false;
  std::map<std::string, std::string> annotations;
  std::string job;    // pod of this builder Job, or of the Job of a proof ("...-proof")
  std::string words;  // waiting or termination message
  std::map<std::string, std::string> labels = {};  // in addition to those of the workload
  std::vector<std::string> other_gates = {};       // of other controllers
  std::string restart_policy = {};                 // as the API defaults it where empty
  bool probe = true;                               // has a readiness probe
};

struct BundleSetup {
  std::string node;  // whose facts the key has
  std::string image = "server:1";
  std::string digest = "a";  // one hex digit, repeated
  int published = 0;
  bool native = true;
  double compile_seconds = 0;
  std::vector<std::string> active;  // nodes
};

class SnapshotBuilder {
 public:
  SnapshotBuilder();

  SnapshotBuilder& Now(int seconds);
  SnapshotBuilder& Node(const NodeSetup& setup);
  SnapshotBuilder& Pod(const PodSetup& setup);
  SnapshotBuilder& Bundle(const BundleSetup& setup);
  // The state after a first plan: dry run passed, Ready, injecting.
  SnapshotBuilder& Accepted();
  // Sets the result of the dry run that the plan requests now.
  SnapshotBuilder& DryRunAnswered(plan::DryRunResult unmodified, plan::DryRunResult injected,
                                  const std::string& message = "");

  plan::Snapshot& in() { return in_; }
  api::CacheWarmup& warmup() { return in_.warmup; }
  api::WarmupStatus& status() { return in_.warmup.status; }
  codec::Json& pod_template() { return *template_; }
  api::Node& node(const std::string& name);
  api::NodeCache& cache(const std::string& name);
  plan::NodeView& view(const std::string& name);
  api::NodeWarmup& reported(const std::string& node);

  // The key of pods of this image on that node.
  std::string Key(const std::string& node, const std::string& image = "server:1");
  plan::Plan Decide() const;
  // Stores the status and the NodeCache entries of a plan.
  void Apply(const plan::Plan& plan);

 private:
  std::shared_ptr<codec::Json> template_;
  std::map<std::string, std::shared_ptr<api::Node>> nodes_;
  std::map<std::string, std::shared_ptr<api::NodeCache>> caches_;
  plan::Snapshot in_;
};

// With the node "n1".
SnapshotBuilder OneNode();

// "sha256:" of one hex digit, repeated.
Digest DigestNamed(const std::string& digit);
codec::Json PodObject(const plan::Snapshot& in, const PodSetup& setup);

// Find a part of a plan; nullptr if the plan lacks it.
const api::Condition* Condition(const plan::Plan& plan, const std::string& type);
std::string ReasonOf(const plan::Plan& plan, const std::string& type);
const plan::NodeEntries* EntriesOf(const plan::Plan& plan, const std::string& node);
const plan::GateRelease* ReleaseOf(const plan::Plan& plan, const std::string& pod);
const plan::PodAnnotation* AnnotationOf(const plan::Plan& plan, const std::string& pod,
                                        const std::string& key);
bool HasEvent(const plan::Plan& plan, const std::string& reason);

}  // namespace cachewarm::fakes
