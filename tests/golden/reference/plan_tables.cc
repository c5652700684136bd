// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/reference/plan_tables.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "operator/plan/builders/transitions.h"
#include "operator/plan/gates/gate_rules.h"

namespace cachewarm::reference {
namespace {

using plan::BuildPhase;

std::string_view NameOf(plan::ReleasePreference preference) {
  switch (preference) {
    case plan::ReleasePreference::kNone:
      break;
    case plan::ReleasePreference::kWarmNodes:
      return "warm nodes";
    case plan::ReleasePreference::kBuilderNodes:
      return "nodes with the GPU type and CPU class of the build";
  }
  return "none";
}

class GateRows {
 public:
  void Add(std::string_view when, std::string_view reason, plan::ReleasePreference preference) {
    text_ += fmt::format("| {} | {} | {} | {} |\n", ++count_, when,
                         reason.empty() ? std::string("held") : fmt::format("`{}`", reason),
                         NameOf(preference));
  }
  const std::string& text() const { return text_; }

 private:
  int count_ = 0;
  std::string text_;
};

constexpr std::pair<BuildPhase, std::string_view> kPhases[] = {
    {BuildPhase::kNone, "No build of the key runs: there was none, or the last one has ended."},
    {BuildPhase::kCandidate,
     "A held pod is elected and released first. Its container has not started."},
    {BuildPhase::kJob, "A builder Job is requested. Its container has not started."},
    {BuildPhase::kStarting,
     "The builder's container runs, and the agent waits until its cache has settled."},
    {BuildPhase::kPacking, "The agent packs and publishes the builder's files."},
    {BuildPhase::kRanks,
     "The builder's files are captured. Other pods of its group are captured one by one."},
    {BuildPhase::kProving,
     "A second Job starts with the bundle on the builder's node (`spec.compile.proof`)."},
    {BuildPhase::kCaptured, "The build has ended with a bundle."},
    {BuildPhase::kFailed, "The build has ended without a bundle."},
};

std::string_view NameOf(plan::BuildAction action) {
  switch (action) {
    case plan::BuildAction::kNone:
      break;
    case plan::BuildAction::kPublish:
      return "publish the bundle to all nodes";
    case plan::BuildAction::kFail:
      return "count a failed attempt";
    case plan::BuildAction::kRetire:
      return "elect another builder, without a failed attempt";
  }
  return "";
}

std::string NamesOf(plan::BuildPhases phases) {
  std::string out;
  for (const auto& [phase, meaning] : kPhases) {
    if (phases.Contains(phase)) {
      out += fmt::format("{}{}", out.empty() ? "" : ", ", Name(phase));
    }
  }
  return out;
}

}  // namespace

std::string GatesTable() {
  GateRows rows;
  for (const plan::GateRule& rule : plan::GateRules()) {
    const bool is_of_workload = rule.action == plan::GateAction::kRelease && rule.reason.empty();
    if (!is_of_workload) {
      rows.Add(rule.when, rule.reason, rule.preference);
      continue;
    }
    for (const plan::WorkloadRule& each : plan::WorkloadRules()) {
      rows.Add(each.when, each.reason, each.preference);
    }
  }
  return "# Gates\n\n"
         "Why a held pod is released, or stays held. The operator judges the rows in this order\n"
         "for each held pod whenever something changes. The first row that applies decides.\n"
         "Afterwards, if one pod of a group is not held, the other pods of the group are released\n"
         "with the reason `ReleasedWithGroup`.\n\n"
         "| # | when | outcome | preferred nodes |\n"
         "| --- | --- | --- | --- |\n" +
         rows.text();
}

std::string BuildsTable() {
  std::string out =
      "# Builds\n\n"
      "The life of a build (`status.builders`). Only this table changes the state of a build; an\n"
      "event that is not listed for a phase cannot happen in it.\n\n"
      "| phase | `state` | meaning |\n| --- | --- | --- |\n";
  for (const auto& [phase, meaning] : kPhases) {
    const std::string state =
        phase == BuildPhase::kNone ? "" : fmt::format("`{}`", api::Name(StateOf(phase)));
    out += fmt::format("| {} | {} | {} |\n", Name(phase), state, meaning);
  }
  out += "\n| phase | event | next phase | `reason` | action |\n| --- | --- | --- | --- | --- |\n";
  for (const plan::BuildTransition& row : plan::BuildTransitions()) {
    out += fmt::format(
        "| {} | {} | {} | {} | {} |\n", NamesOf(row.from), Name(row.event), Name(row.to),
        row.reason.empty() ? std::string() : fmt::format("`{}`", row.reason), NameOf(row.action));
  }
  return out;
}

}  // namespace cachewarm::reference
