// SPDX-License-Identifier: Apache-2.0
#include "cli/lint/read_objects.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "cli/lint/engine_names.h"
#include "cli/lint/shell_words.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/api/accelerators.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/object.h"

namespace cachewarm::lint {
namespace {

using codec::Json;

const Json& EmptyList() {
  static const Json list = Json::array();
  return list;
}

// Returns the list at `path`; an empty one if there is none.
const Json& ListAt(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* found = codec::At(object, path);
  return found != nullptr && found->is_array() ? *found : EmptyList();
}

std::optional<int64_t> NumberAt(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* found = codec::At(object, path);
  if (found == nullptr || !found->is_number_integer()) {
    return std::nullopt;
  }
  return found->get<int64_t>();
}

// Returns a number of seconds or probes, without the values with which sums would overflow.
int64_t BoundedAt(const Json& probe, std::string_view name, int64_t otherwise) {
  return std::clamp<int64_t>(NumberAt(probe, {name}).value_or(otherwise), 0, 1'000'000);
}

std::optional<Probe> ProbeAt(const Json& container, std::string_view name) {
  const Json* probe = codec::At(container, {name});
  if (probe == nullptr || !probe->is_object()) {
    return std::nullopt;
  }
  return Probe{.initial_delay_seconds = BoundedAt(*probe, "initialDelaySeconds", 0),
               .period_seconds = BoundedAt(*probe, "periodSeconds", 10),
               .failure_threshold = BoundedAt(*probe, "failureThreshold", 3)};
}

void AddWords(const Json& list, Container& container) {
  for (const Json& each : list) {
    if (!each.is_string()) {
      continue;
    }
    const std::string word = each.get<std::string>();
    container.script += (container.script.empty() ? "" : " ") + word;
    const bool is_script = std::any_of(word.begin(), word.end(), [](char c) {
      return std::isspace(static_cast<unsigned char>(c)) != 0;
    });
    if (!is_script) {
      container.words.push_back(word);
      continue;
    }
    for (std::string& part : ShellWords(word)) {
      container.words.push_back(std::move(part));
    }
  }
}

Variable ReadVariable(const Json& env) {
  return {.name = codec::TextAt(env, {"name"}),
          .value = codec::TextAt(env, {"value"}),
          .field_path = codec::TextAt(env, {"valueFrom", "fieldRef", "fieldPath"}),
          .from_secret = codec::At(env, {"valueFrom", "secretKeyRef"}) != nullptr};
}

Container ReadContainer(const Json& json, const Json& pod_spec) {
  Container container{.name = codec::TextAt(json, {"name"}),
                      .image = codec::TextAt(json, {"image"}),
                      .startup_probe = ProbeAt(json, "startupProbe"),
                      .liveness_probe = ProbeAt(json, "livenessProbe")};
  for (const Json& env : ListAt(json, {"env"})) {
    container.env.push_back(ReadVariable(env));
  }
  AddWords(ListAt(json, {"command"}), container);
  AddWords(ListAt(json, {"args"}), container);
  for (const Json& mount : ListAt(json, {"volumeMounts"})) {
    container.mounts.push_back(
        {.path = codec::TextAt(mount, {"mountPath"}), .volume = codec::TextAt(mount, {"name"})});
  }
  container.run_as_user = NumberAt(json, {"securityContext", "runAsUser"});
  if (!container.run_as_user.has_value()) {
    container.run_as_user = NumberAt(pod_spec, {"securityContext", "runAsUser"});
  }
  container.engine = api::AcceleratorsOf(json) > 0 || NamesEngine(container);
  return container;
}

// Walks one object and adds its pod templates.
class Walk {
 public:
  Walk(const Json& object, Scope scope, Input& input)
      : kind_(codec::TextAt(object, {"kind"})),
        name_(kube::NameOf(object)),
        scope_(scope),
        input_(input) {}

  int templates() const { return templates_; }

  void Visit(const Json& value, const std::string& path) {
    if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i) {
        Visit(value[i], fmt::format("{}[{}]", path, i));
      }
    }
    if (!value.is_object()) {
      return;
    }
    const std::string prefix = path.empty() ? "" : path + ".";
    for (const auto& [key, member] : value.items()) {
      if (key == "spec" && !ListAt(member, {"containers"}).empty()) {
        Add(member, prefix + key);
      } else if (key != "status" && key != "metadata") {
        Visit(member, prefix + key);
      }
    }
  }

 private:
  void Add(const Json& pod_spec, const std::string& path) {
    ++templates_;
    PodTemplate out{.kind = kind_, .ns = name_.ns, .name = name_.name};
    const Json& containers = ListAt(pod_spec, {"containers"});
    for (size_t i = 0; i < containers.size(); ++i) {
      out.containers.push_back(ReadContainer(containers[i], pod_spec));
      out.containers.back().field = fmt::format("{}.containers[{}]", path, i);
    }
    const bool has_engine = std::any_of(out.containers.begin(), out.containers.end(),
                                        [](const Container& each) { return each.engine; });
    if (!has_engine && scope_ == Scope::kManifest) {
      return;
    }
    for (Container& container : out.containers) {
      container.engine = container.engine || !has_engine;
    }
    for (const Json& volume : ListAt(pod_spec, {"volumes"})) {
      if (codec::At(volume, {"emptyDir"}) != nullptr) {
        out.empty_dirs.insert(codec::TextAt(volume, {"name"}));
      }
    }
    const Json* links = codec::At(pod_spec, {"enableServiceLinks"});
    out.service_links = links == nullptr || !links->is_boolean() || links->get<bool>();
    input_.templates.push_back(std::move(out));
  }

  const std::string kind_;
  const kube::ObjectName name_;
  const Scope scope_;
  Input& input_;
  int templates_ = 0;
};

}  // namespace

std::string PodTemplate::Object() const {
  return fmt::format("{} {}{}{}", kind, ns, ns.empty() ? "" : "/", name);
}

absl::StatusOr<int> AddObject(const Json& object, Scope scope, Input& input) {
  const std::string kind = codec::TextAt(object, {"kind"});
  if (kind.empty()) {
    return absl::InvalidArgumentError(
        "a document has no \"kind\": expected Kubernetes objects, such as the output of "
        "\"helm template\" or \"kubectl get -o yaml\"");
  }
  int found = 0;
  if (kind.ends_with("List")) {
    for (const Json& item : ListAt(object, {"items"})) {
      auto added = AddObject(item, scope, input);
      if (!added.ok()) {
        return added.status();
      }
      found += *added;
    }
    return found;
  }
  if (kind == "Service") {
    const kube::ObjectName name = kube::NameOf(object);
    input.services.push_back({.ns = name.ns, .name = name.name});
    return 0;
  }
  Walk walk(object, scope, input);
  walk.Visit(object, "");
  return walk.templates();
}

}  // namespace cachewarm::lint
