// SPDX-License-Identifier: Apache-2.0
#include "cli/lint/rules.h"

#include <array>

#include "cli/lint/checks.h"

namespace cachewarm::lint {
namespace {

using enum Severity;

constexpr std::array<Rule, 14> kRules = {{
    {.name = "per-pod-environment",
     .severity = kError,
     .looks_at = "variables that vLLM hashes, variables of cache directories, HOME and XDG_*: a "
                 "fieldRef to metadata.name, metadata.uid, status.podIP, status.hostIP or "
                 "spec.nodeName, or a reference to such a variable",
     .remedy = "give the variable the same value in all pods, or remove it",
     .known = "ai-dynamo/dynamo#10695: the pod's IP was part of the key; vllm-project/vllm#47573: "
              "so were paths below HOME",
     .check = FindPerPodVariables},
    {.name = "nixl-side-channel-host",
     .severity = kWarning,
     .looks_at = "VLLM_NIXL_SIDE_CHANNEL_HOST with a value per pod",
     .remedy = "use a vLLM that ignores the variable (its commit f9f770ca or later)",
     .known = "ai-dynamo/dynamo#10695 (vLLM 0.20.1), vllm-project/vllm#46235",
     .check = FindNixlHost},
    {.name = "ray-bundle-indices",
     .severity = kWarning,
     .looks_at = "VLLM_RAY_BUNDLE_INDICES",
     .remedy = "give all engines the same indices, or use one placement group per engine",
     .known = "NovaSky-AI/SkyRL#2167: engines with other indices share no cache",
     .check = FindRayBundleIndices},
    {.name = "api-key-environment",
     .severity = kError,
     .looks_at = "VLLM_API_KEY",
     .remedy = "put the key into a variable with another name and pass it with "
               "--api-key $(NAME), which vLLM does not hash",
     .known = "vllm-project/vllm#47573 lists the hashed variables; published caches hold the "
              "variable in cache_key_factors.json",
     .check = FindApiKey},
    {.name = "aiter-jit-dir",
     .severity = kError,
     .looks_at = "AITER_JIT_DIR",
     .remedy = "remove the variable until the issue is fixed",
     .known = "ROCm/aiter#3635: vLLM hangs (open)",
     .check = FindAiterDirectory},
    {.name = "service-environment",
     .severity = kError,
     .looks_at = "Services of the namespace named vllm or sglang, while enableServiceLinks is not "
                 "false",
     .remedy = "set enableServiceLinks: false in the pod template, or rename the Service",
     .known = "vllm-project/vllm#34199, vllm-project/vllm#5867: VLLM_PORT appears to be a URI",
     .check = FindServiceVariables},
    {.name = "random-model-path",
     .severity = kError,
     .looks_at = "--model, --model-path or the operand of vllm serve: date, mktemp, $RANDOM, a "
                 "hostname, or a variable with a value per pod",
     .remedy = "put the model into a directory with a fixed name",
     .known = "vllm-project/vllm#53193: the model's path is part of the key (open)",
     .check = FindRandomModelPath},
    {.name = "one-sided-hub-offline",
     .severity = kError,
     .looks_at = "HF_HUB_OFFLINE of containers with the same image and model",
     .remedy = "set HF_HUB_OFFLINE in all of them or in none",
     .known = "NVIDIA/nvcf (NVSnap): 19.8 s instead of 4.6 s after a restore with HF_HUB_OFFLINE",
     .check = FindOneSidedOffline},
    {.name = "one-sided-model-path",
     .severity = kError,
     .looks_at = "--model of containers with the same image and the same name of the model",
     .remedy = "give all of them the same text for --model",
     .known = "vllm-project/vllm#53193: /data1/Qwen3-8B and /data2/Qwen3-8B have different keys",
     .check = FindOneSidedModelPath},
    {.name = "port-per-pod",
     .severity = kWarning,
     .looks_at = "options that end with \"port\" whose value is random or differs from pod to pod",
     .remedy = "use the same port in all pods: each pod has its own IP",
     .known = "the ignore list of vLLM's ParallelConfig lacks _coord_store_port (read in its "
              "source, not measured)",
     .check = FindPortPerPod},
    {.name = "unpinned-image",
     .severity = kWarning,
     .looks_at = "images without a tag and digest, or with the tag latest, nightly, main or master",
     .remedy = "name a version or a digest (IMAGE@sha256:...)",
     .known = "the sources of torch, Triton and vLLM hash their own files into every key",
     .check = FindUnpinnedImage},
    {.name = "home-from-uid",
     .severity = kWarning,
     .looks_at = "runAsUser other than 0 without the variable HOME",
     .remedy = "set HOME to a directory that the user may write, and USER to any name",
     .known = "pytorch/pytorch#140765 and vllm-project/vllm#46734: getpass.getuser() fails for a "
              "uid without a name",
     .check = FindHomeOfUid},
    {.name = "short-probe",
     .severity = kWarning,
     .looks_at = "initialDelaySeconds + periodSeconds * failureThreshold of the startupProbe, else "
                 "of the livenessProbe, beside the median of the cold starts in the CacheWarmup's "
                 "status, else --cold-start",
     .remedy = "add a startupProbe with a larger failureThreshold",
     .known = "ai-dynamo/dynamo#14735: compiles of 30 to 70 s ended by the liveness probe",
     .check = FindShortProbe},
    {.name = "cache-on-empty-dir",
     .severity = kWarning,
     .looks_at = "variables of cache directories on an emptyDir, and an emptyDir mounted at the "
                 "default directory of a cache",
     .remedy = "remove the variable and the volume: cachewarm mounts its own and sets the variable",
     .known = "llm-d/llm-d#2216, gpustack/gpustack#5175: every restart compiles again",
     .check = FindEmptyDirCache},
}};

}  // namespace

std::string_view Name(Severity severity) {
  return severity == kError ? "error" : "warning";
}

std::span<const Rule> AllRules() {
  return kRules;
}

std::vector<std::string> RuleNames() {
  std::vector<std::string> names;
  names.reserve(kRules.size());
  for (const Rule& rule : kRules) {
    names.emplace_back(rule.name);
  }
  return names;
}

}  // namespace cachewarm::lint
