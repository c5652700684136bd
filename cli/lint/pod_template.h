// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

// The values that the rules of "cachewarm lint" read. Plain values, no I/O.
namespace cachewarm::lint {

struct Variable {
  std::string name;
  std::string value;       // as written, with references like "$(POD_NAME)"
  std::string field_path;  // valueFrom.fieldRef.fieldPath; empty: no fieldRef
  bool from_secret = false;
};

struct Mount {
  std::string path;
  std::string volume;
};

struct Probe {
  int64_t initial_delay_seconds = 0;
  int64_t period_seconds = 10;
  int64_t failure_threshold = 3;

  // Seconds after the start of the container at which kubelet restarts it, if no probe succeeds.
  int64_t Limit() const { return initial_delay_seconds + period_seconds * failure_threshold; }
};

struct Container {
  std::string name;
  std::string image;
  std::string field;    // path inside the object: "spec.template.spec.containers[0]"
  bool engine = false;  // may run an engine that compiles; rules look at no other containers
  std::vector<Variable> env;
  std::string script;              // command and args, joined by blanks
  std::vector<std::string> words;  // command and args; a script is split into its words
  std::vector<Mount> mounts;
  std::optional<Probe> startup_probe;
  std::optional<Probe> liveness_probe;
  std::optional<int64_t> run_as_user;  // of the container, else of the pod
};

// One pod template of an object, or a pod.
struct PodTemplate {
  std::string kind;
  std::string ns;  // empty: not given
  std::string name;
  std::vector<Container> containers;
  std::set<std::string, std::less<>> empty_dirs;  // names of the volumes that are an emptyDir
  bool service_links = true;                      // spec.enableServiceLinks
  // Median of the cold starts of the CacheWarmup; not set: none was measured.
  std::optional<double> cold_seconds;

  std::string Object() const;  // "Deployment team/llama"
};

struct Service {
  std::string ns;  // empty: not given
  std::string name;
};

// Start of an engine without a cache that is assumed while none was measured. Published cold starts
// take 64 s (0.5B parameters, NovaSky-AI/SkyRL#2167) to 870 s (235B, NVIDIA/nvcf).
inline constexpr double kAssumedColdSeconds = 300;

struct Input {
  std::vector<PodTemplate> templates;
  std::vector<Service> services;
  double assumed_cold_seconds = kAssumedColdSeconds;
};

}  // namespace cachewarm::lint
