// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/lint/pod_template.h"
#include "cli/lint/rules.h"

// The checks of the rules in rules.cc; each looks only at containers that may run an engine.
namespace cachewarm::lint {

using ContainerCheck = std::function<void(const PodTemplate&, const Container&)>;
void ForEachEngine(const Input& input, const ContainerCheck& check);

// "spec.template.spec.containers[0].env[VLLM_API_KEY]"
std::string FieldOf(const Container& container, std::string_view list, std::string_view name);

// Environment.
std::vector<Problem> FindPerPodVariables(const Input& input);
std::vector<Problem> FindNixlHost(const Input& input);
std::vector<Problem> FindRayBundleIndices(const Input& input);
std::vector<Problem> FindApiKey(const Input& input);
std::vector<Problem> FindAiterDirectory(const Input& input);
std::vector<Problem> FindHomeOfUid(const Input& input);
std::vector<Problem> FindServiceVariables(const Input& input);

// Command line.
std::vector<Problem> FindRandomModelPath(const Input& input);
std::vector<Problem> FindPortPerPod(const Input& input);
std::vector<Problem> FindOneSidedOffline(const Input& input);
std::vector<Problem> FindOneSidedModelPath(const Input& input);

// Image, probes and volumes.
std::vector<Problem> FindUnpinnedImage(const Input& input);
std::vector<Problem> FindShortProbe(const Input& input);
std::vector<Problem> FindEmptyDirCache(const Input& input);

}  // namespace cachewarm::lint
