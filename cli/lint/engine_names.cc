// SPDX-License-Identifier: Apache-2.0
#include "cli/lint/engine_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string>

#include "lib/caches/cache_table.h"

namespace cachewarm::lint {
namespace {

// Beginnings of words in images and command lines, in lower case.
constexpr std::array<std::string_view, 9> kEngineWords = {
    "vllm", "sglang", "torch", "pytorch", "jax", "tensorrt", "trtllm", "tritonserver", "lmdeploy"};
// Variables with these prefixes are settings of an engine. TRITON_ is not among them, because
// clients of NVIDIA's Triton server use it.
constexpr std::array<std::string_view, 7> kEnginePrefixes = {
    "VLLM_", "SGLANG_", "TORCHINDUCTOR_", "TORCH_COMPILE_", "JAX_", "FLASHINFER_", "AITER_"};
// Variables with a value per pod that vLLM ignores in its hash. It ignores
// VLLM_NIXL_SIDE_CHANNEL_HOST only in newer versions, which has a rule of its own.
constexpr std::array<std::string_view, 3> kIgnoredByVllm = {"VLLM_HOST_IP", "VLLM_PORT",
                                                            "VLLM_NIXL_SIDE_CHANNEL_HOST"};

bool StartsWithOneOf(std::string_view text, const auto& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

std::string InLowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Returns true if a word of `text`, which is in lower case, begins with `word`.
bool HasWordWith(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (at == 0 || std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0) {
      return true;
    }
  }
  return false;
}

bool HasEngineWord(const std::string& text) {
  const std::string lower = InLowerCase(text);
  return std::any_of(kEngineWords.begin(), kEngineWords.end(),
                     [&](std::string_view word) { return HasWordWith(lower, word); });
}

}  // namespace

bool NamesEngine(const Container& container) {
  return HasEngineWord(container.image) || HasEngineWord(container.script) ||
         std::any_of(container.env.begin(), container.env.end(), [](const Variable& variable) {
           return StartsWithOneOf(variable.name, kEnginePrefixes) || IsCacheVariable(variable.name);
         });
}

bool RunsVllm(const Container& container) {
  return HasWordWith(InLowerCase(container.image), "vllm") ||
         HasWordWith(InLowerCase(container.script), "vllm") ||
         std::any_of(container.env.begin(), container.env.end(),
                     [](const Variable& variable) { return variable.name.starts_with("VLLM_"); });
}

bool IsCacheVariable(std::string_view name) {
  static const std::set<std::string, std::less<>> names = [] {
    std::set<std::string, std::less<>> all;
    for (const api::EnvVar& variable : caches::CacheTable::AllPresets().Env()) {
      if (variable.value.starts_with('/')) {
        all.insert(variable.name);
      }
    }
    return all;
  }();
  return names.contains(name);
}

bool IsHashedByVllm(std::string_view name) {
  return name.starts_with("VLLM_") && !name.starts_with("VLLM_LOGGING_") &&
         std::find(kIgnoredByVllm.begin(), kIgnoredByVllm.end(), name) == kIgnoredByVllm.end();
}

}  // namespace cachewarm::lint
