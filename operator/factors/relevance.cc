// SPDX-License-Identifier: Apache-2.0
#include "operator/factors/relevance.h"

#include <array>
#include <cctype>
#include <span>

#include "fmt/format.h"

namespace cachewarm::factors {
namespace {

constexpr std::string_view kSameValue = "Set the same value in all pods of the workload";
constexpr std::string_view kRemoveDirectory =
    "Remove the variable, so that cachewarm sets it to a path below /var/cache/cachewarm";

// One rule. `pattern` is a name, or a name with one "*" at its beginning or end.
struct Rule {
  std::string_view pattern;
  Knowledge knowledge;
};

constexpr Knowledge kIgnored = {Relevance::kNone, "no known engine has it in its key", kSameValue};
constexpr Knowledge kDirectory = {
    Relevance::kLikely, "it selects the directory in which the engine looks for compiled code",
    kRemoveDirectory, true};
constexpr Knowledge kHome = {Relevance::kLikely,
                             "engines derive cache directories and configuration paths from it, "
                             "and vLLM hashes some of them",
                             kSameValue, true};
constexpr Knowledge kVllm = {
    Relevance::kKey, "vLLM hashes every VLLM_* variable that it does not ignore into its key",
    kSameValue};
constexpr Knowledge kInductor = {
    Relevance::kKey, "TorchInductor hashes its whole configuration into its key", kSameValue};
constexpr Knowledge kTriton = {Relevance::kKey,
                               "Triton hashes the variables that change its compiler into its key",
                               kSameValue};
constexpr Knowledge kXla = {Relevance::kKey, "JAX hashes XLA's flags into its key", kSameValue};
constexpr Knowledge kModel = {
    Relevance::kLikely,
    "it names the model, and vLLM hashes the path or identifier of the model into its key",
    "Use the same model path in all pods of the workload"};
constexpr Knowledge kToolchain = {
    Relevance::kLikely, "compilers and libraries that engines hash into their keys depend on it",
    kSameValue};
constexpr Knowledge kThreads = {Relevance::kLikely,
                                "TorchInductor compiles the number of threads into its CPU kernels",
                                kSameValue};

// The first rule that matches applies. Sources: torch/_inductor/codecache.py, triton/runtime/cache,
// vllm/envs.py (the variables that it does not hash) and vllm/config, jax/_src/cache_key.py.
constexpr Rule kVariables[] = {
    {"VLLM_CACHE_ROOT", kDirectory},
    {"VLLM_HOST_IP", kIgnored},
    {"VLLM_PORT", kIgnored},
    {"VLLM_LOG*", kIgnored},
    {"VLLM_CONFIGURE_LOGGING", kIgnored},
    {"VLLM_NO_USAGE_STATS", kIgnored},
    {"VLLM_DO_NOT_TRACK", kIgnored},
    {"VLLM_S3_*", kIgnored},
    {"VLLM_NIXL_SIDE_CHANNEL_HOST",
     {Relevance::kKey, "vLLM before mid-2026 hashes it into its key (vllm#46235)",
      "Update vLLM, or set the same value in all pods"}},
    {"VLLM_RAY_BUNDLE_INDICES",
     {Relevance::kKey, "vLLM hashes it into its key, and Ray sets it for each engine (SkyRL#2167)",
      "Unset it before the engine starts"}},
    {"VLLM_API_KEY",
     {Relevance::kKey, "vLLM hashes it into its key",
      "Pass the API key in a file or as an argument instead"}},
    {"VLLM_*", kVllm},
    {"RAY_EXPERIMENTAL_NOSET_*", kVllm},
    {"TORCHINDUCTOR_CACHE_DIR", kDirectory},
    {"TORCHINDUCTOR_*", kInductor},
    {"TORCH_COMPILE_CACHE_KEY_TAG",
     {Relevance::kKey, "TorchInductor hashes it into its key to separate caches on purpose",
      kSameValue}},
    {"TORCH_EXTENSIONS_DIR", kDirectory},
    {"TORCH_LOGS*", kIgnored},
    {"TORCH_TRACE", kIgnored},
    {"TORCH_*", kInductor},
    {"ATEN_CPU_CAPABILITY", kInductor},
    {"TRITON_CACHE_DIR", kDirectory},
    {"TRITON_HOME", kDirectory},
    {"TRITON_*", kTriton},
    {"LLVM_*", kTriton},
    {"MLIR_*", kTriton},
    {"DISABLE_PTXAS_OPT", kTriton},
    {"JAX_COMPILATION_CACHE_DIR", kDirectory},
    {"JAX_*", kXla},
    {"XLA_FLAGS", kXla},
    {"LIBTPU_INIT_ARGS", kXla},
    {"NUMBA_CACHE_DIR", kDirectory},
    {"NUMBA_*",
     {Relevance::kKey, "numba's key contains the processor and the options of its compiler",
      kSameValue}},
    {"FLASHINFER_WORKSPACE_BASE", kDirectory},
    {"FLASHINFER_LOG*", kIgnored},
    {"FLASHINFER_*",
     {Relevance::kLikely, "FlashInfer rebuilds a kernel when its command line changes",
      kSameValue}},
    {"CUDA_VISIBLE_DEVICES", kIgnored},
    {"NVIDIA_VISIBLE_DEVICES", kIgnored},
    {"NVIDIA_DRIVER_CAPABILITIES", kIgnored},
    {"HF_TOKEN", kIgnored},
    {"HUGGING_FACE_HUB_TOKEN", kIgnored},
    {"HF_HUB_OFFLINE", kModel},
    {"TRANSFORMERS_OFFLINE", kModel},
    {"HF_HOME", kModel},
    {"HF_HUB_CACHE", kModel},
    {"TRANSFORMERS_CACHE", kModel},
    {"MODEL", kModel},
    {"MODEL_*", kModel},
    {"*_MODEL", kModel},
    {"*_MODEL_ID", kModel},
    {"*_MODEL_PATH", kModel},
    {"*_MODEL_NAME", kModel},
    {"*_CACHE_DIR", kDirectory},
    {"*_CACHE_ROOT", kDirectory},
    {"*_CACHE_PATH", kDirectory},
    {"DG_JIT_CACHE_DIR", kDirectory},
    {"AITER_JIT_DIR", kDirectory},
    {"XDG_CACHE_HOME", kHome},
    {"XDG_CONFIG_HOME", kHome},
    {"HOME", kHome},
    {"USER", kHome},
    {"TMPDIR", kHome},
    {"OMP_NUM_THREADS", kThreads},
    {"CC", kToolchain},
    {"CXX", kToolchain},
    {"PATH", kToolchain},
    {"PYTHONPATH", kToolchain},
    {"VIRTUAL_ENV", kToolchain},
    {"LD_LIBRARY_PATH", kToolchain},
    {"LD_PRELOAD", kToolchain},
    {"CUDA_HOME", kToolchain},
    {"CUDA_PATH", kToolchain},
    {"NVCC*", kToolchain},
    {"SGLANG_LOG*", kIgnored},
    {"SGLANG_*",
     {Relevance::kLikely, "SGLang selects kernels and compile options by its variables",
      kSameValue}},
    {"HOSTNAME", kIgnored},
    {"POD_NAME", kIgnored},
    {"POD_UID", kIgnored},
    {"POD_IP", kIgnored},
    {"NODE_NAME", kIgnored},
    {"NODE_IP", kIgnored},
    {"HOST_IP", kIgnored},
    {"PORT", kIgnored},
    {"TZ", kIgnored},
    {"LANG", kIgnored},
    {"KUBERNETES_*", kIgnored},
    {"MASTER_ADDR", kIgnored},
    {"MASTER_PORT", kIgnored},
    {"NCCL_*", kIgnored},
    {"GLOO_*", kIgnored},
    {"UCX_*", kIgnored},
    {"OTEL_*", kIgnored},
    {"DD_*", kIgnored},
    {"SENTRY_*", kIgnored},
    {"AWS_*", kIgnored},
    {"S3_*", kIgnored},
    {"GOOGLE_*", kIgnored},
    {"AZURE_*", kIgnored},
    {"PROMETHEUS_*", kIgnored},
    {"PYTHONUNBUFFERED", kIgnored},
    {"*_LOG_LEVEL", kIgnored},
    {"LOG_LEVEL", kIgnored},
    {"*_proxy", kIgnored},
    {"*_PROXY", kIgnored},
};

constexpr Rule kArguments[] = {
    {"--model", kModel},
    {"--model-path", kModel},
    {"--model-id", kModel},
    {"--host", kIgnored},
    {"--port", kIgnored},
    {"--api-key", kIgnored},
    {"--served-model-name", kIgnored},
    {"--gpu-memory-utilization", kIgnored},
    {"--mem-fraction-static", kIgnored},
    {"--log-level", kIgnored},
    {"--uvicorn-log-level", kIgnored},
    {"--disable-log-requests", kIgnored},
    {"--disable-log-stats", kIgnored},
    {"--enable-log-requests", kIgnored},
    {"--max-log-len", kIgnored},
    {"--ssl-*", kIgnored},
    {"--root-path", kIgnored},
    {"--allowed-*", kIgnored},
    {"--otlp-traces-endpoint", kIgnored},
    {"--metrics-port", kIgnored},
    {"--enable-metrics", kIgnored},
    {"--tool-call-parser", kIgnored},
    {"--enable-auto-tool-choice", kIgnored},
    {"--reasoning-parser", kIgnored},
    {"--chat-template", kIgnored},
    {"--node-rank", kIgnored},
    {"--master-addr", kIgnored},
    {"--master-port", kIgnored},
    {"--dist-init-addr", kIgnored},
    {"--data-parallel-address", kIgnored},
    {"--data-parallel-rank", kIgnored},
};

constexpr Rule kOthers[] = {
    {"image",
     {Relevance::kKey,
      "a bundle serves one image, because engines hash their own code into the key",
      "Wait until the bundle of this image is published, or use one image in all pods"}},
    {"gpuType",
     {Relevance::kKey, "compiled code is for one GPU type",
      "Wait until the bundle of this GPU type is published, or select nodes with spec.gpuTypes"}},
    {"devices",
     {Relevance::kKey, "engines compile other code for another number of devices",
      "Request the same number of devices in all pods of the workload"}},
    {"container",
     {Relevance::kKey, "a bundle serves one container", "Use one container name in all pods"}},
    {"mountPath",
     {Relevance::kKey, "JAX hashes absolute paths into its key, and Triton stores them",
      "Mount the cache at /var/cache/cachewarm"}},
    {"cpuClass",
     {Relevance::kLikely, "native code for the CPU runs only on its CPU class",
      "Wait until the bundle of this CPU class is published, or select nodes of one CPU class"}},
    {"driver",
     {Relevance::kPossible, "the cache of the CUDA driver is valid for one driver version",
      "Use one driver version on all nodes of the workload"}},
    {"imageID",
     {Relevance::kPossible, "the image tag may have moved to other content",
      "Name the image by its digest"}},
    {"envFrom",
     {Relevance::kPossible, "the variables come from another ConfigMap or Secret",
      "Use the same sources in all pods of the workload"}},
};

bool Matches(std::string_view pattern, std::string_view name) {
  if (pattern.starts_with('*')) {
    return name.ends_with(pattern.substr(1));
  }
  if (pattern.ends_with('*')) {
    return name.starts_with(pattern.substr(0, pattern.size() - 1));
  }
  return name == pattern;
}

const Knowledge* FindRule(std::span<const Rule> rules, std::string_view name) {
  for (const Rule& rule : rules) {
    if (Matches(rule.pattern, name)) {
      return &rule.knowledge;
    }
  }
  return nullptr;
}

constexpr std::string_view kVariable = "env/";
constexpr std::string_view kArgument = "args/";

}  // namespace

Knowledge KnowledgeOf(std::string_view name, bool is_per_pod) {
  if (name.starts_with(kVariable)) {
    if (const Knowledge* known = FindRule(kVariables, name.substr(kVariable.size()))) {
      return *known;
    }
    // Programs read such variables to identify the pod, which does not change their code.
    return is_per_pod ? kIgnored
                      : Knowledge{Relevance::kPossible, "the program may read it", kSameValue};
  }
  if (name.starts_with(kArgument)) {
    if (const Knowledge* known = FindRule(kArguments, name.substr(kArgument.size()))) {
      return *known;
    }
    return {is_per_pod ? Relevance::kPossible : Relevance::kLikely,
            "arguments select what an engine compiles, and vLLM hashes most of them",
            "Use the same arguments in all pods of the workload"};
  }
  const Knowledge* known = FindRule(kOthers, name);
  return known == nullptr ? kIgnored : *known;
}

std::string DescribeFactor(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNames = {
      {{"gpuType", "GPU type"},
       {"cpuClass", "CPU class"},
       {"driver", "GPU driver version"},
       {"devices", "number of devices"},
       {"mountPath", "mount path of the cache"},
       {"imageID", "image content (the image ID that kubelet reports)"},
       {"container", "container name"}}};
  if (name.starts_with(kVariable)) {
    return fmt::format("environment variable {}", name.substr(kVariable.size()));
  }
  if (name.starts_with(kArgument)) {
    const std::string_view argument = name.substr(kArgument.size());
    const bool is_position = !argument.empty() && std::isdigit(argument.front()) != 0;
    return is_position ? fmt::format("word {} of command and args", argument)
                       : fmt::format("argument {}", argument);
  }
  for (const auto& [key, text] : kNames) {
    if (key == name) {
      return std::string(text);
    }
  }
  return std::string(name);
}

}  // namespace cachewarm::factors
