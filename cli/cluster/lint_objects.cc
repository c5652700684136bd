// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/lint_objects.h"

#include <utility>

#include "cli/cluster/list_objects.h"
#include "cli/lint/read_objects.h"
#include "fmt/format.h"
#include "lib/api/cache_warmup.h"
#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/object.h"
#include "lib/kube/core/request.h"

namespace cachewarm::cli {
namespace {

using codec::Json;

// The fields of a CacheWarmup that the rules use.
struct ColdStarts {
  std::string warmup;
  std::string kind;
  std::string workload;  // name in spec.workloadRef; empty: none
  double seconds = 0;    // median of the cold starts
};

// Reads the objects of one call of ReadLintObjects().
class LintReader {
 public:
  LintReader(const LintSource& source, lint::Input& input, std::stop_token stop)
      : source_(source), input_(input), stop_(std::move(stop)) {}

  void ReadServices() {
    NoteFailure(
        List(
            kube::kServices,
            [this](const Json& service) {
              input_.services.push_back({.ns = source_.ns, .name = kube::NameOf(service).name});
              return absl::OkStatus();
            },
            [this] { input_.services.clear(); }),
        "the rule service-environment is not checked");
  }

  void ReadColdStarts() {
    NoteFailure(List(
                    kube::kCacheWarmups, [this](const Json& object) { return AddCold(object); },
                    [this] { cold_.clear(); }),
                "the cold start is assumed");
  }

  absl::Status Read(const NamedObject& named) {
    CW_ASSIGN_OR_RETURN(const Json object, Get(named));
    const Json* reference = codec::At(object, {"spec", "workloadRef"});
    if (named.resource == kube::kCacheWarmups && reference != nullptr) {
      const kube::Resource* workload = kube::FindResource(codec::TextAt(*reference, {"apiVersion"}),
                                                          codec::TextAt(*reference, {"kind"}));
      if (workload == nullptr) {
        return absl::FailedPreconditionError(fmt::format(
            "CacheWarmup {}/{}: unknown kind in spec.workloadRef", source_.ns, named.name));
      }
      return Read({.resource = *workload, .name = codec::TextAt(*reference, {"name"})});
    }
    return Add(named, object);
  }

 private:
  template <typename OnObject, typename OnRestart>
  absl::Status List(const kube::Resource& resource, OnObject on_object, OnRestart on_restart) {
    return ForEachObject(source_.client, resource, source_.ns, source_.clock,
                         {.on_object = on_object, .on_restart = on_restart}, stop_);
  }

  void NoteFailure(const absl::Status& status, std::string_view consequence) const {
    if (!status.ok() && !absl::IsCancelled(status)) {
      source_.on_note(fmt::format("{}; {}", Message(status), consequence));
    }
  }

  absl::StatusOr<Json> Get(const NamedObject& named) const {
    auto object = source_.client.Do(kube::Get(named.resource, {source_.ns, named.name}), stop_);
    return object.ok()
               ? std::move(object)
               : Annotate(object.status(), fmt::format("{}/{}", named.resource.plural, named.name));
  }

  absl::Status AddCold(const Json& object) {
    const auto warmup = api::DecodeCacheWarmup(object);
    if (warmup.ok() && warmup->status.starts.cold_median_seconds > 0) {
      const api::WorkloadRef reference = warmup->spec.workload_ref.value_or(api::WorkloadRef());
      cold_.push_back({.warmup = warmup->name,
                       .kind = reference.kind,
                       .workload = reference.name,
                       .seconds = warmup->status.starts.cold_median_seconds});
    }
    return absl::OkStatus();
  }

  // Returns the cold start of the object's own CacheWarmup; nullopt if none was measured.
  std::optional<double> ColdOf(const NamedObject& named, const Json& object) const {
    const std::string warmup =
        codec::TextAt(object, {"metadata", "annotations", api::kWarmupAnnotation});
    for (const ColdStarts& cold : cold_) {
      const bool is_its_workload = cold.kind == named.resource.kind && cold.workload == named.name;
      const bool is_itself = named.resource == kube::kCacheWarmups && cold.warmup == named.name;
      if (is_its_workload || is_itself || (!warmup.empty() && cold.warmup == warmup)) {
        return cold.seconds;
      }
    }
    return std::nullopt;
  }

  absl::Status Add(const NamedObject& named, const Json& object) {
    const size_t before = input_.templates.size();
    CW_ASSIGN_OR_RETURN(const int found,
                        lint::AddObject(object, lint::Scope::kNamedObject, input_));
    if (found == 0) {
      return absl::FailedPreconditionError(
          fmt::format("{} {}/{} has no pod template: name one of its pods, such as pod/{}-0",
                      named.resource.kind, source_.ns, named.name, named.name));
    }
    for (size_t i = before; i < input_.templates.size(); ++i) {
      input_.templates[i].cold_seconds = ColdOf(named, object);
    }
    return absl::OkStatus();
  }

  const LintSource& source_;
  lint::Input& input_;
  const std::stop_token stop_;
  std::vector<ColdStarts> cold_;
};

}  // namespace

absl::Status ReadLintObjects(const LintSource& source, const std::vector<NamedObject>& objects,
                             lint::Input& input, std::stop_token stop) {
  LintReader reader(source, input, std::move(stop));
  reader.ReadServices();
  reader.ReadColdStarts();
  for (const NamedObject& named : objects) {
    CW_RETURN_IF_ERROR(reader.Read(named));
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::cli
