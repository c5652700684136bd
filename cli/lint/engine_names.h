// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "cli/lint/pod_template.h"

// How an engine is recognised, and which of its variables are part of the key of its cache.
namespace cachewarm::lint {

// Returns true if the image, the command line or the environment of the container names an engine.
bool NamesEngine(const Container& container);

// Returns true if the image, the command line or the environment of the container names vLLM.
bool RunsVllm(const Container& container);

// Returns true if the variable holds the directory of a compile cache (lib/caches).
bool IsCacheVariable(std::string_view name);

// Returns true if vLLM hashes the variable. vLLM hashes every VLLM_ variable that its envs.py does
// not list as ignored (vllm-project/vllm#47573 lists the 211 factors).
bool IsHashedByVllm(std::string_view name);

}  // namespace cachewarm::lint
