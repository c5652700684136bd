// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fmt/format.h"
#include "lib/api/json/limits.h"
#include "lib/api/json/parts.h"
#include "lib/codec/json_value.h"

namespace cachewarm::api::json {
namespace {

using codec::Reader;

constexpr size_t kItemsMax = 4096;
constexpr size_t kTextMax = 1U << 20U;

void Add(Resources& sum, const Resources& more) {
  for (const auto& [resource, amount] : more) {
    sum[resource] += amount;
  }
}

void Raise(Resources& most, const Resources& other) {
  for (const auto& [resource, amount] : other) {
    most[resource] = std::max(most[resource], amount);
  }
}

// Returns the resource requests of a container, or those at the level of a pod. A limit replaces a
// missing request, as in the API server.
Resources RequestsOf(Reader& owner) {
  Resources requests;
  owner.Object("resources", [&](Reader& resources) {
    ReadResources(resources, "limits", requests);
    ReadResources(resources, "requests", requests);
  });
  return requests;
}

// Computes the requests of a pod as the scheduler does (Kubernetes "Pod effective request"). For
// each resource this is the larger of two sums: all containers and sidecars, or the largest init
// container and the sidecars started before it. A request at the level of the pod replaces this
// amount. Then the overhead is added.
void ReadRequests(Reader& spec, Resources& out) {
  Resources running;
  Resources init_most;
  spec.List("initContainers", kItemsMax, [&](Reader& container) {
    std::string restart_policy;
    container.Read("restartPolicy", restart_policy);
    Resources own = RequestsOf(container);
    if (restart_policy == "Always") {
      Add(running, own);
      Raise(init_most, running);
    } else {
      Add(own, running);
      Raise(init_most, own);
    }
  });
  spec.List("containers", kItemsMax,
            [&](Reader& container) { Add(running, RequestsOf(container)); });
  Raise(running, init_most);
  for (const auto& [resource, amount] : RequestsOf(spec)) {
    running[resource] = amount;
  }
  Resources overhead;
  ReadResources(spec, "overhead", overhead);
  Add(running, overhead);
  out = std::move(running);
}

std::string Words(std::string_view reason, std::string_view message) {
  if (reason.empty() || message.empty()) {
    return std::string(reason.empty() ? message : reason);
  }
  return fmt::format("{}: {}", reason, message);
}

std::string WordsOf(Reader& state) {
  std::string reason;
  std::string message;
  state.Read("reason", reason).Read("message", message, kTextMax);
  return Words(reason, message);
}

std::string TerminationWords(Reader& state) {
  int64_t exit_code = 0;
  state.Read("exitCode", exit_code);
  return fmt::format("exit {}: {}", exit_code, WordsOf(state));
}

void ReadOwner(Reader& owner, Pod& out) {
  bool controller = false;
  owner.Read("controller", controller);
  if (controller) {
    owner.Read("kind", out.owner_kind).Read("name", out.owner_name);
  }
}

void ReadState(Reader& state, ContainerStatus& out) {
  state.Object("running", [&](Reader& running) {
    out.running = true;
    running.Read("startedAt", out.started_time);
  });
  state.Object("waiting", [&](Reader& waiting) { out.message = WordsOf(waiting); });
  state.Object("terminated", [&](Reader& terminated) {
    int64_t exit_code = 0;
    terminated.Read("exitCode", exit_code);
    out.terminated = true;
    out.exit_code = static_cast<int>(exit_code);
    terminated.Read("startedAt", out.started_time);
    terminated.Read("finishedAt", out.ended_time);
    out.message = TerminationWords(terminated);
  });
}

void ReadContainerStatus(Reader& reader, ContainerStatus& out) {
  reader.Read("name", out.name)
      .Read("ready", out.ready)
      .Read("restartCount", out.restarts, 0, kCountMax);
  reader.Object("state", [&](Reader& state) { ReadState(state, out); });
  // Add the termination message of the previous instance: it explains more than "CrashLoopBackOff".
  reader.Object("lastState", [&](Reader& last) {
    last.Object("terminated", [&](Reader& terminated) {
      if (!out.running && !out.terminated) {
        out.message = Words(out.message, TerminationWords(terminated));
      }
    });
  });
}

void ReadCondition(Reader& condition, Pod& out) {
  std::string type;
  std::string status;
  condition.Read("type", type).Read("status", status);
  if (status != "True") {
    return;
  }
  if (type == "Ready") {
    out.ready = true;
    condition.Read("lastTransitionTime", out.ready_time);
  } else if (type == "ContainersReady") {
    out.containers_ready = true;
    condition.Read("lastTransitionTime", out.containers_ready_time);
  }
}

}  // namespace

void ReadPod(Reader& object, Pod& out) {
  ReadMeta(object, out.meta);
  object.Object("metadata", [&](Reader& meta) {
    meta.List("ownerReferences", kItemsMax, [&](Reader& owner) { ReadOwner(owner, out); });
  });
  object.Object("spec", [&](Reader& spec) {
    std::string restart_policy;
    spec.Read("nodeName", out.node)
        .Read("nodeSelector", out.node_selector)
        .Read("restartPolicy", restart_policy);
    out.may_end = MayEnd(restart_policy);
    spec.List("schedulingGates", kItemsMax,
              [&](Reader& gate) { gate.Read("name", out.gates.emplace_back()); });
    ReadRequests(spec, out.requests);
  });
  object.Object("status", [&](Reader& status) {
    status.Read("phase", out.phase).Read("podIP", out.ip);
    status.List("conditions", kItemsMax, [&](Reader& condition) { ReadCondition(condition, out); });
    status.List("containerStatuses", kItemsMax,
                [&](Reader& item) { ReadContainerStatus(item, out.containers.emplace_back()); });
  });
}

}  // namespace cachewarm::api::json

namespace cachewarm::api {

Resources PodRequests(const codec::Json& pod_spec) {
  codec::Reader reader(pod_spec, "spec");
  Resources out;
  json::ReadRequests(reader, out);
  return out;
}

Resources ContainerRequests(const codec::Json& container) {
  codec::Reader reader(container, "container");
  return json::RequestsOf(reader);
}

bool HasEnded(const Pod& pod) {
  return pod.phase == "Succeeded" || pod.phase == "Failed";
}

bool MayEnd(std::string_view restart_policy) {
  return !restart_policy.empty() && restart_policy != "Always";
}

}  // namespace cachewarm::api
