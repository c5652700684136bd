// SPDX-License-Identifier: Apache-2.0
#include "operator/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"

namespace cachewarm::op {
namespace {

using Setter = absl::Status (*)(Config& config, const std::string& value);

// One setting: every place it can come from and what it does.
struct Setting {
  std::string_view flag;
  std::string_view environment;
  std::string_view key;  // in the file; empty: not settable there
  std::string_view fallback;
  bool is_switch;  // may be given without a value
  Setter set;
  std::string_view help;
};

absl::StatusOr<int> WholeNumber(const std::string& value, int min, int max) {
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < min || number > max) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a whole number from {} to {}", value, min, max));
  }
  return number;
}

absl::Status SetListen(Config& config, const std::string& value) {
  const size_t colon = value.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not ADDRESS:PORT, for example 0.0.0.0:8080 or [::]:8080", value));
  }
  CW_ASSIGN_OR_RETURN(const int port, WholeNumber(value.substr(colon + 1), 0, 65535));
  std::string address = value.substr(0, colon);
  if (address.size() > 1 && address.front() == '[' && address.back() == ']') {
    address = address.substr(1, address.size() - 2);
  }
  config.listen_address = address.empty() ? "0.0.0.0" : address;
  config.listen_port = static_cast<uint16_t>(port);
  return absl::OkStatus();
}

absl::Status SetRoot(Config& config, const std::string& value) {
  if (value.size() < 2 || value.front() != '/' || value.size() > 1024 ||
      value.find("/../") != std::string::npos || value.ends_with("/..")) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not an absolute directory below / without \"..\"", value));
  }
  config.root = value.ends_with('/') ? value.substr(0, value.size() - 1) : value;
  return absl::OkStatus();
}

absl::Status SetLeaderElect(Config& config, const std::string& value) {
  if (value != "true" && value != "false") {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is neither true nor false", value));
  }
  config.leader_elect = value == "true";
  return absl::OkStatus();
}

absl::Status SetLogLevel(Config& config, const std::string& value) {
  CW_ASSIGN_OR_RETURN(config.log_level, ParseLogLevel(value));
  return absl::OkStatus();
}

// DNS-1123 label, as the API server asks of a namespace.
absl::Status SetNamespace(Config& config, const std::string& value) {
  const bool fits =
      !value.empty() && value.size() <= 63 && std::all_of(value.begin(), value.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
      });
  if (!fits) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is not the name of a namespace", value));
  }
  config.ns = value;
  return absl::OkStatus();
}

absl::Status SetIdentity(Config& config, const std::string& value) {
  if (value.empty() || value.size() > 253) {
    return absl::InvalidArgumentError("must hold 1 to 253 characters");
  }
  config.identity = value;
  return absl::OkStatus();
}

absl::Status SetKubeconfig(Config& config, const std::string& value) {
  config.kubeconfig = value;
  return absl::OkStatus();
}

absl::Status SetWorkers(Config& config, const std::string& value) {
  CW_ASSIGN_OR_RETURN(config.workers, WholeNumber(value, 1, 16));
  return absl::OkStatus();
}

constexpr std::array<Setting, 8> kSettings = {{
    {"--kubeconfig", "CACHEWARM_KUBECONFIG", "", "the pod's service account", false, &SetKubeconfig,
     "kubeconfig file to reach the API server with; exec plugins are refused"},
    {"--listen", "CACHEWARM_LISTEN", "listen", "0.0.0.0:8080", false, &SetListen,
     "address and port of /metrics, /healthz and /readyz"},
    {"--root", "CACHEWARM_ROOT", "root", "/var/lib/cachewarm", false, &SetRoot,
     "directory of the agents on every node; must be the agents' own and the policy's"},
    {"--leader-elect", "CACHEWARM_LEADER_ELECT", "leaderElect", "true", true, &SetLeaderElect,
     "work only while holding the Lease; false only where a single operator can ever run"},
    {"--log-level", "CACHEWARM_LOG_LEVEL", "logLevel", "info", false, &SetLogLevel,
     "debug, info, warning or error; one JSON line per event on standard error"},
    {"--namespace", "CACHEWARM_NAMESPACE", "", "cachewarm-system", false, &SetNamespace,
     "namespace that the operator runs in; its Lease is kept there"},
    {"--identity", "CACHEWARM_IDENTITY", "", "the host name", false, &SetIdentity,
     "name of this process in the Lease"},
    {"--workers", "CACHEWARM_WORKERS", "workers", "2", false, &SetWorkers,
     "warmups that are reconciled at the same time, 1 to 16"},
}};

// Keys of the shared file that only agents read.
constexpr std::array<std::string_view, 4> kAgentKeys = {"store", "registry", "byteLimit",
                                                        "nodeFacts"};

constexpr std::string_view kConfigFlag = "--config";
constexpr std::string_view kConfigEnvironment = "CACHEWARM_CONFIG";

const Setting* FindFlag(std::string_view flag) {
  const auto* found = std::find_if(kSettings.begin(), kSettings.end(),
                                   [&](const Setting& row) { return row.flag == flag; });
  return found == kSettings.end() ? nullptr : found;
}

// Flag → value as given, and what the two printing flags ask for.
struct Arguments {
  std::map<std::string, std::string, std::less<>> values;
  bool help = false;
  bool version = false;
};

absl::StatusOr<Arguments> SplitArguments(const std::vector<std::string>& arguments) {
  Arguments out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      out.help = true;
      continue;
    }
    if (argument == "--version") {
      out.version = true;
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    const Setting* setting = FindFlag(flag);
    if (setting == nullptr && flag != kConfigFlag) {
      return absl::InvalidArgumentError(
          fmt::format("unknown argument \"{}\"; --help lists those that exist", argument));
    }
    if (equals != std::string::npos) {
      out.values[flag] = argument.substr(equals + 1);
    } else if (setting != nullptr && setting->is_switch) {
      out.values[flag] = "true";
    } else if (i + 1 < arguments.size()) {
      out.values[flag] = arguments[++i];
    } else {
      return absl::InvalidArgumentError(fmt::format("{} needs a value", flag));
    }
  }
  return out;
}

bool IsSettable(std::string_view key) {
  return std::any_of(kSettings.begin(), kSettings.end(),
                     [&](const Setting& row) { return row.key == key; });
}

std::string ScalarText(const codec::Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

absl::StatusOr<std::map<std::string, std::string, std::less<>>> ReadFileKeys(
    const ConfigSources& sources, const std::string& path) {
  CW_ASSIGN_OR_RETURN(const std::string text, sources.read_file(path));
  const auto documents = codec::ParseYamlStream(text);
  if (!documents.ok()) {
    return Annotate(documents.status(), path);
  }
  std::map<std::string, std::string, std::less<>> keys;
  if (documents->empty()) {
    return keys;
  }
  if (documents->size() > 1 || !documents->front().is_object()) {
    return absl::InvalidArgumentError(fmt::format("{}: must be one map of settings", path));
  }
  for (const auto& [key, value] : documents->front().items()) {
    if (std::find(kAgentKeys.begin(), kAgentKeys.end(), key) != kAgentKeys.end()) {
      continue;
    }
    if (key.empty() || !IsSettable(key)) {
      return absl::InvalidArgumentError(
          fmt::format("{}: unknown key \"{}\"; --help lists those that exist", path, key));
    }
    if (value.is_structured() || value.is_null()) {
      return absl::InvalidArgumentError(fmt::format("{}: {}: must be one plain value", path, key));
    }
    keys[key] = ScalarText(value);
  }
  return keys;
}

// Where the value of one setting was found, for the error message.
struct Found {
  std::string value;
  std::string source;
};

std::optional<Found> Find(const Setting& setting, const Arguments& arguments,
                          const ConfigSources& sources,
                          const std::map<std::string, std::string, std::less<>>& file) {
  if (const auto flag = arguments.values.find(setting.flag); flag != arguments.values.end()) {
    return Found{flag->second, std::string(setting.flag)};
  }
  const std::string name(setting.environment);
  if (const auto value = sources.environment(name)) {
    return Found{*value, name};
  }
  if (const auto key = file.find(setting.key); !setting.key.empty() && key != file.end()) {
    return Found{key->second, std::string(setting.key)};
  }
  return std::nullopt;
}

}  // namespace

std::string HelpText() {
  std::string text =
      "cachewarm-operator: decides which pod compiles, which node gets which bundle and which pod\n"
      "is held until then. Runs in the cluster as two replicas, of which the leader works.\n\n"
      "Usage: cachewarm-operator [--config FILE] [flags]\n\n"
      "A flag beats its environment variable, which beats the file.\n\n";
  text += fmt::format("  {}=FILE\n      YAML file with the keys named below ({})\n", kConfigFlag,
                      kConfigEnvironment);
  for (const Setting& row : kSettings) {
    const std::string key = row.key.empty() ? "" : fmt::format(", key {}", row.key);
    text += fmt::format("  {}\n      {}\n      default: {}  (environment {}{})\n", row.flag,
                        row.help, row.fallback, row.environment, key);
  }
  text += "  --version\n      print the version and exit\n  --help\n      print this and exit\n";
  return text;
}

absl::StatusOr<CommandLine> ParseConfig(const ConfigSources& sources) {
  CommandLine out;
  out.config.identity = sources.host_name;
  CW_ASSIGN_OR_RETURN(const Arguments arguments, SplitArguments(sources.arguments));
  if (arguments.help || arguments.version) {
    out.print =
        arguments.help ? HelpText() : fmt::format("cachewarm-operator {}\n", sources.version);
    return out;
  }
  std::map<std::string, std::string, std::less<>> file;
  const auto named = arguments.values.find(kConfigFlag);
  const std::optional<std::string> path =
      named != arguments.values.end() ? std::optional(named->second)
                                      : sources.environment(std::string(kConfigEnvironment));
  if (path.has_value() && !path->empty()) {
    CW_ASSIGN_OR_RETURN(file, ReadFileKeys(sources, *path));
  }
  for (const Setting& setting : kSettings) {
    const auto found = Find(setting, arguments, sources, file);
    if (found.has_value()) {
      CW_RETURN_IF_ERROR(Annotate(setting.set(out.config, found->value), found->source));
    }
  }
  if (out.config.identity.empty()) {
    return absl::InvalidArgumentError("--identity: the host has no name; give one");
  }
  return out;
}

}  // namespace cachewarm::op
