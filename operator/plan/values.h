// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/model/plan.h"
#include "operator/model/snapshot.h"

// The values that the stages read and return, without the prefix model::.
namespace cachewarm::plan {

using api::Resources;
using model::AdmissionDryRun;
using model::BuilderJob;
using model::BuildOutcome;
using model::BuildRequestsState;
using model::CreateFailure;
using model::DesiredBuildRequests;
using model::DesiredJob;
using model::DesiredLogRead;
using model::DryRunRequest;
using model::DryRunResult;
using model::EngineReport;
using model::EventRequest;
using model::GateRelease;
using model::kReleaseRefusalLasts;
using model::NodeEntries;
using model::NodeView;
using model::ObjectRef;
using model::OtherWarmup;
using model::Plan;
using model::PodAnnotation;
using model::ReleaseRefusal;
using model::RolloutConstraints;
using model::RunsToCompletion;
using model::Settings;
using model::Snapshot;
using model::Workload;
using model::WorkloadKind;

}  // namespace cachewarm::plan
