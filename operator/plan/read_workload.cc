// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "lib/api/accelerators.h"
#include "lib/api/names.h"
#include "lib/base/digest.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/gate/core/held.h"
#include "operator/plan/decisions.h"
#include "operator/render/dry_run_pod.h"
#include "operator/render/injection.h"

namespace cachewarm::plan {

using codec::Json;

namespace {

constexpr api::StartResult kStartResults[] = {
    api::StartResult::kBuilder, api::StartResult::kCold,   api::StartResult::kHit,
    api::StartResult::kPartial, api::StartResult::kMiss,   api::StartResult::kInert,
    api::StartResult::kHollow,  api::StartResult::kUnknown};

// Returns the template, taken from the newest pod that matches the selector. If all pods have
// ended, as between two runs of a Job, takes it from the newest pod that succeeded.
std::shared_ptr<const Json> LearnTemplate(const Snapshot& in) {
  const auto age = [](const api::Pod& pod) {
    return std::tuple(pod.phase != "Succeeded", pod.meta.created, std::string_view(pod.meta.uid));
  };
  const api::Pod* newest = nullptr;
  for (const auto& pod : in.pods) {
    const bool of_job = pod->meta.labels.contains(api::kBuilderWarmupLabel);
    if (of_job || pod->object == nullptr || pod->phase == "Failed") {
      continue;
    }
    if (newest == nullptr || age(*pod) > age(*newest)) {
      newest = pod.get();
    }
  }
  return newest == nullptr
             ? nullptr
             : std::make_shared<const Json>(render::TemplateOf(*newest->object, in.warmup.uid));
}

const Json* ChooseContainer(const Json& pod_spec, const std::string& wanted) {
  const Json& containers = codec::ListAt(pod_spec, {"containers"});
  if (!wanted.empty()) {
    return codec::Named(containers, wanted);
  }
  for (const Json& container : containers) {
    if (api::AcceleratorsOf(container) > 0) {
      return &container;
    }
  }
  return containers.empty() ? nullptr : &containers.front();
}

PodFactors FactorsOf(const Json& container) {
  return {.image = codec::TextAt(container, {"image"}),
          .devices = api::AcceleratorsOf(container),
          .container = codec::TextAt(container, {"name"})};
}

// Sets the factors of the view to those that pods of the template have after admission: as the API
// server answered the last dry run, else as it answered before the operator restarted. A template
// that was read from a pod has been through admission already.
void ApplyAdmission(const Snapshot& in, TemplateView& view) {
  if (in.workload.kind == WorkloadKind::kSelector) {
    return;
  }
  const auto is_current = [&](const std::optional<api::AdmittedContainer>& each) {
    return each && each->revision == view.revision && !each->image.empty();
  };
  const auto& stored = in.warmup.status.admitted;
  const auto& admitted = is_current(in.dry_run.admitted) ? in.dry_run.admitted : stored;
  if (!is_current(admitted) || view.factors.image.empty()) {
    view.admitted = stored;
    view.admission_unknown = stored.has_value();
    return;
  }
  if (admitted->image != view.factors.image || admitted->devices != view.factors.devices) {
    view.admitted = admitted;
    view.factors.image = admitted->image;
    view.factors.devices = admitted->devices;
  }
}

TemplateView ReadTemplate(const Snapshot& in) {
  TemplateView out;
  out.pod_template =
      in.workload.kind == WorkloadKind::kSelector ? LearnTemplate(in) : in.workload.pod_template;
  if (out.pod_template == nullptr) {
    out.factors.container = in.warmup.spec.container;
    if (out.factors.container.empty() && in.warmup.status.injection) {
      out.factors.container = in.warmup.status.injection->container;
    }
    ApplyAdmission(in, out);
    return out;
  }
  out.labels = codec::Texts(codec::At(*out.pod_template, {"metadata", "labels"}));
  out.revision = "t-" + DigestOf(codec::DumpJson(*out.pod_template)).Short();
  const Json* spec = codec::At(*out.pod_template, {"spec"});
  if (spec == nullptr) {
    return out;
  }
  out.shape = ShapeOf(*spec);
  out.may_end = api::MayEnd(codec::TextAt(*spec, {"restartPolicy"}));
  if (const Json* container = ChooseContainer(*spec, in.warmup.spec.container)) {
    out.factors = FactorsOf(*container);
    out.run_as = render::RunAs(*spec, out.factors.container);
    out.has_readiness_probe = codec::At(*container, {"readinessProbe"}) != nullptr;
  }
  ApplyAdmission(in, out);
  return out;
}

// Returns the last part of the pod's volume path, which names the container's user (run_as); "" if
// the pod does not mount this warmup's directory. Compares the warmup's uid too, because an earlier
// warmup may have had the same name.
std::string MountedRunAs(const api::CacheWarmup& warmup, const Json& object) {
  const Json* volume = codec::Named(codec::ListAt(object, {"spec", "volumes"}), api::kVolume);
  const Json* path = volume == nullptr ? nullptr : codec::At(*volume, {"hostPath", "path"});
  if (path == nullptr || !path->is_string()) {
    return "";
  }
  const std::string text = path->get<std::string>();
  const std::string volume_path = fmt::format("/{}/{}/{}/", warmup.ns, warmup.name, warmup.uid);
  const size_t at = text.find(volume_path);
  return at == std::string::npos ? "" : text.substr(at + volume_path.size());
}

// Returns the result of the pod's first start; nullopt if that start is not counted yet. Reads
// status.starts.recent first, then the pod's annotation, which remains after `recent` has dropped
// the result. Returns kUnknown for a counted start whose result is in neither of them.
std::optional<api::StartResult> CountedAs(const api::Starts& starts, const api::Pod& pod) {
  for (const api::StartSample& sample : starts.recent) {
    if (sample.pod_uid == pod.meta.uid) {
      return sample.result;
    }
  }
  const auto annotation = pod.meta.annotations.find(api::kStartAnnotation);
  if (annotation != pod.meta.annotations.end()) {
    const auto parsed = codec::ParseJson(annotation->second, {.bytes_max = 4096, .depth_max = 4});
    const std::string word = parsed.ok() ? codec::TextAt(*parsed, {"result"}) : std::string();
    for (const api::StartResult each : kStartResults) {
      if (api::Name(each) == word) {
        return each;
      }
    }
    return api::StartResult::kUnknown;
  }
  const auto& counted = starts.counted_pod_uids;
  return std::find(counted.begin(), counted.end(), pod.meta.uid) == counted.end()
             ? std::nullopt
             : std::optional(api::StartResult::kUnknown);
}

// True if the pod exits when its work is done. A readiness probe shows that a pod is a server, even
// if its restart policy allows it to end. Pods of a kGroup workload, such as a RayCluster, are
// servers even without a readiness probe.
bool RunsToCompletion(WorkloadKind kind, const TemplateView& pod_template, const PodView& view,
                      const Json& container) {
  // The pod of a builder Job always has the restart policy Never, which says nothing about the
  // workload, so the policy of the template decides.
  const bool may_end = view.of_job ? pod_template.may_end : view.pod->may_end;
  return RunsToCompletion(kind) || (may_end && kind != WorkloadKind::kGroup &&
                                    codec::At(container, {"readinessProbe"}) == nullptr);
}

bool IsOfOtherWarmup(const api::CacheWarmup& warmup, const api::Pod& pod) {
  const auto taken = pod.meta.annotations.find(api::kWarmupAnnotation);
  return taken != pod.meta.annotations.end() && taken->second != warmup.name;
}

PodView ReadPod(const Snapshot& in, const TemplateView& pod_template,
                const std::shared_ptr<const api::Pod>& pod) {
  PodView view{.pod = pod, .of_other_warmup = IsOfOtherWarmup(in.warmup, *pod)};
  view.held = gate::IsHeld(*pod);
  view.of_job = pod->meta.labels.contains(api::kBuilderWarmupLabel);
  view.of_proof = view.of_job && pod->meta.labels.contains(api::kBuilderProofLabel);
  view.finished = api::HasEnded(*pod);
  view.revision = api::RevisionOf(pod->meta.labels);
  if (pod->object != nullptr) {
    view.run_as = MountedRunAs(in.warmup, *pod->object);
    view.injected = !view.run_as.empty();
    const Json* container = codec::Named(codec::ListAt(*pod->object, {"spec", "containers"}),
                                         pod_template.factors.container);
    if (container != nullptr) {
      view.factors = FactorsOf(*container);
      view.runs_to_completion = RunsToCompletion(in.workload.kind, pod_template, view, *container);
    }
  }
  view.counted = CountedAs(in.warmup.status.starts, *pod);
  for (const api::ContainerStatus& container : pod->containers) {
    if (container.name == pod_template.factors.container) {
      view.container = &container;
    }
  }
  return view;
}

// Sets the shapes of held pods. Reads each distinct shape only once, because all held pods of one
// template have the same shape.
void ReadShapes(std::vector<PodView>& pods) {
  std::map<std::string, std::shared_ptr<const PodShape>> shapes;
  for (PodView& pod : pods) {
    const Json* spec =
        pod.held && pod.pod->object != nullptr ? codec::At(*pod.pod->object, {"spec"}) : nullptr;
    if (!pod.held) {
      continue;
    }
    Json parts = Json::object();
    for (const char* part :
         {"affinity", "containers", "initContainers", "nodeSelector", "overhead", "tolerations"}) {
      const Json* found = spec == nullptr ? nullptr : codec::At(*spec, {part});
      if (found != nullptr) {
        parts[part] = *found;
      }
    }
    auto& shape = shapes[codec::DumpJson(parts)];
    if (shape == nullptr) {
      shape = std::make_shared<const PodShape>(ShapeOf(parts));
    }
    pod.shape = shape;
  }
}

// Returns the names of the variables that the template's container sets in its env.
std::set<std::string, std::less<>> OwnVariables(const TemplateView& view) {
  std::set<std::string, std::less<>> names;
  const Json* container =
      view.pod_template == nullptr
          ? nullptr
          : codec::Named(codec::ListAt(*view.pod_template, {"spec", "containers"}),
                         view.factors.container);
  if (container != nullptr) {
    for (const Json& variable : codec::ListAt(*container, {"env"})) {
      names.insert(codec::TextAt(variable, {"name"}));
    }
  }
  return names;
}

}  // namespace

std::vector<PodView> ReadPods(const Snapshot& in, const TemplateView& pod_template) {
  std::vector<PodView> pods;
  pods.reserve(in.pods.size());
  for (const auto& pod : in.pods) {
    pods.push_back(ReadPod(in, pod_template, pod));
  }
  std::sort(pods.begin(), pods.end(), [](const PodView& a, const PodView& b) {
    return std::pair(a.pod->meta.created, std::string_view(a.pod->meta.uid)) <
           std::pair(b.pod->meta.created, std::string_view(b.pod->meta.uid));
  });
  ReadShapes(pods);
  return pods;
}

WorkloadView ReadWorkload(const Snapshot& in) {
  WorkloadView out{.pod_template = ReadTemplate(in)};
  const auto table = caches::CacheTable::Make(in.warmup.spec.caches);
  if (!table.ok()) {
    out.spec_problem = Message(table.status());
    return out;
  }
  out.env = table->Env(OwnVariables(out.pod_template));
  out.strict_env = table->StrictEnv();
  if (NeedsProof(in.warmup.spec) && out.strict_env.empty()) {
    out.spec_problem = fmt::format(
        "spec.compile.proof: no cache of spec.caches has an engine that can refuse to compile; add "
        "one of {} to spec.caches, or remove spec.compile.proof",
        fmt::join(caches::ProvablePresetNames(), ", "));
  }
  return out;
}

}  // namespace cachewarm::plan
