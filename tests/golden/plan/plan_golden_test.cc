// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"
#include "lib/gate/client/release.h"
#include "operator/plan/decide.h"
#include "operator/render/affinity.h"
#include "operator/render/applied.h"
#include "tests/fakes/source_dir.h"

// Cluster YAML in, Plan YAML out. NAME.yaml holds the objects as kubectl prints them, after one
// document {now, agents, free, dry_run_passed} for state that no object has; NAME.plan.yaml holds
// the result of Decide(). UPDATE_GOLDEN=1 rewrites the latter.
namespace cachewarm::plan {
namespace {

using codec::Json;

std::filesystem::path Folder() {
  return std::filesystem::path(fakes::SourceDir()) / "tests/golden/plan";
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

template <typename T>
T Must(absl::StatusOr<T> value, const std::string& what) {
  if (!value.ok()) {
    throw std::runtime_error(what + ": " + value.status().ToString());
  }
  return *std::move(value);
}

void ReadWorkload(const Json& object, Snapshot& out) {
  const auto shared = std::make_shared<const Json>(object);
  out.workload = {.found = true,
                  .name = codec::TextAt(object["metadata"], {"name"}),
                  .selector = codec::Texts(codec::At(object, {"spec", "selector", "matchLabels"})),
                  .replicas = codec::IntegerAt(object["spec"], {"replicas"}, 1),
                  .pod_template = std::shared_ptr<const Json>(
                      shared, codec::At(*shared, {"spec", "template"}))};
}

void ReadObject(const Json& object, Snapshot& out) {
  const std::string kind = codec::TextAt(object, {"kind"});
  if (kind == "CacheWarmup") {
    out.warmup = Must(api::DecodeCacheWarmup(object), "CacheWarmup");
  } else if (kind == "Deployment") {
    ReadWorkload(object, out);
  } else if (kind == "Node") {
    auto node = std::make_shared<api::Node>(Must(api::DecodeNode(object), "Node"));
    out.nodes.push_back({.node = node, .agent_ready = true, .free = node->allocatable});
  } else if (kind == "NodeCache") {
    auto cache = std::make_shared<api::NodeCache>(Must(api::DecodeNodeCache(object), "NodeCache"));
    for (NodeView& view : out.nodes) {
      if (view.node->meta.name == cache->name) {
        view.cache = cache;
      }
    }
  } else if (kind == "Pod") {
    out.pods.push_back(std::make_shared<const api::Pod>(
        Must(api::DecodePod(std::make_shared<const Json>(object)), "Pod")));
  } else {
    throw std::runtime_error("kind " + kind + " is not known here");
  }
}

Snapshot ReadSnapshot(const std::string& text) {
  const auto documents = Must(codec::ParseYamlStream(text), "YAML");
  Snapshot out;
  out.now = Must(ParseTime(codec::TextAt(documents.at(0), {"now"})), "now");
  for (size_t i = 1; i < documents.size(); ++i) {
    ReadObject(documents[i], out);
  }
  out.workload.found = out.workload.pod_template != nullptr;
  // Answers the requested dry run as an API server would.
  if (codec::FlagAt(documents[0], {"dry_run_passed"})) {
    const Plan first = Decide(out);
    out.dry_run = {.fingerprint = first.dry_run ? first.dry_run->fingerprint : "",
                   .time = out.now,
                   .unmodified = DryRunResult::kAllowed,
                   .injected = DryRunResult::kAllowed};
  }
  return out;
}

Json ReleaseJson(const GateRelease& release) {
  const Json affinity = render::WithHostRules(
      *release.pod, {.excluded = release.excluded, .preferred = release.preferred});
  return {{"pod", release.pod->meta.name},
          {"reason", release.reason},
          {"releaseEvent", release.event.note},
          {"patch", Must(gate::ReleasePatch({.pod = *release.pod,
                                             .reason = release.reason,
                                             .held_seconds = release.held_seconds,
                                             .affinity = &affinity}),
                         "patch")}};
}

template <typename Items, typename ToJson>
void AddList(Json& out, const char* name, const Items& items, const ToJson& to_json) {
  for (const auto& item : items) {
    out[name].push_back(to_json(item));
  }
}

Json PlanJson(const Plan& plan) {
  Json out = {{"statusChanged", plan.status_changed}, {"status", api::EncodeStatus(plan.status)}};
  if (plan.set_inject_label) {
    out["setInjectLabel"] = *plan.set_inject_label;
  }
  AddList(out, "nodes", plan.nodes,
          [](const NodeEntries& wants) { return render::NodeCacheApply(wants.node, wants.spec); });
  AddList(out, "jobsToCreate", plan.jobs_to_create,
          [](const DesiredJob& job) { return *job.object; });
  AddList(out, "jobsToDelete", plan.jobs_to_delete,
          [](const std::string& name) { return Json(name); });
  AddList(out, "annotations", plan.annotations, [](const PodAnnotation& note) {
    return Json{{"pod", note.pod}, {"key", note.key}, {"value", note.value}};
  });
  AddList(out, "releases", plan.releases, ReleaseJson);
  AddList(out, "events", plan.events, [](const EventRequest& event) {
    return Json{{"about", event.regarding.kind + "/" + event.regarding.name},
                {"warning", event.warning},
                {"reason", event.reason},
                {"note", event.note}};
  });
  AddList(out, "startsCounted", plan.starts_counted, [](const api::StartSample& sample) {
    return Json{{"pod", sample.pod}, {"result", std::string(api::Name(sample.result))}};
  });
  if (plan.dry_run) {
    out["dry_run"] = *plan.dry_run->injected;
  }
  return out;
}

std::vector<std::string> CaseNames() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".yaml") && !name.ends_with(".plan.yaml")) {
      out.push_back(name.substr(0, name.size() - 5));
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, PlanMatchesGoldenFile) {
  const Snapshot snapshot = ReadSnapshot(ReadFile(Folder() / (GetParam() + ".yaml")));
  const std::string text = codec::DumpYaml(PlanJson(Decide(snapshot)));
  const std::filesystem::path golden = Folder() / (GetParam() + ".plan.yaml");
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(golden) << text;
  }
  EXPECT_EQ(text, ReadFile(golden)) << "UPDATE_GOLDEN=1 rewrites " << golden;
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(CaseNames()), [](const auto& each) {
  std::string name = each.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace cachewarm::plan
