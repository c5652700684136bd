// SPDX-License-Identifier: Apache-2.0
#include "agent/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "agent/settings.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"

namespace cachewarm::agent {
namespace {

using Values = std::map<std::string, std::string, std::less<>>;

// Keys of the shared file that only the operator reads.
constexpr std::array<std::string_view, 2> kOperatorKeys = {"leaderElect", "workers"};
constexpr std::string_view kConfigFlag = "--config";
constexpr std::string_view kConfigEnvironment = "CACHEWARM_CONFIG";
constexpr size_t kListMax = 64;

struct Arguments {
  Values values;
  bool help = false;
  bool version = false;
  bool print_node_facts = false;
};

bool IsKnown(std::string_view flag) {
  const auto settings = Settings();
  return flag == kConfigFlag || std::any_of(settings.begin(), settings.end(),
                                            [&](const auto& row) { return row.flag == flag; });
}

absl::StatusOr<Arguments> SplitArguments(const std::vector<std::string>& arguments) {
  Arguments out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      out.help = true;
    } else if (argument == "--version") {
      out.version = true;
    } else if (argument == "--print-node-facts") {
      out.print_node_facts = true;
    } else {
      const size_t equals = argument.find('=');
      const std::string flag = argument.substr(0, equals);
      if (!IsKnown(flag)) {
        return absl::InvalidArgumentError(
            fmt::format("unknown argument \"{}\"; --help lists those that exist", argument));
      }
      if (equals == std::string::npos && i + 1 == arguments.size()) {
        return absl::InvalidArgumentError(fmt::format("{} needs a value", flag));
      }
      out.values[flag] = equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
    }
  }
  return out;
}

// The file as "key" or "outer.inner" → text. Lists of plain values are joined by commas.
class FileReader {
 public:
  explicit FileReader(std::string path) : path_(std::move(path)) {}

  absl::Status Read(const codec::Json& object, const std::string& prefix) {
    for (const auto& [name, value] : object.items()) {
      const std::string key = prefix + name;
      if (value.is_object() && IsOuter(key)) {
        CW_RETURN_IF_ERROR(Read(value, key + "."));
      } else if (!IsOperators(key)) {
        CW_RETURN_IF_ERROR(ReadPlain(key, value));
      }
    }
    return absl::OkStatus();
  }

  Values TakeValues() { return std::move(values_); }

 private:
  static bool IsOuter(std::string_view key) {
    const auto settings = Settings();
    const std::string prefix = fmt::format("{}.", key);
    return std::any_of(settings.begin(), settings.end(),
                       [&](const auto& row) { return row.key.starts_with(prefix); });
  }

  static bool IsOperators(std::string_view key) {
    return std::find(kOperatorKeys.begin(), kOperatorKeys.end(), key) != kOperatorKeys.end();
  }

  absl::Status ReadPlain(const std::string& key, const codec::Json& value) {
    const auto settings = Settings();
    if (std::none_of(settings.begin(), settings.end(),
                     [&](const auto& row) { return row.key == key; })) {
      return Wrong(key, "unknown key; --help lists those that exist");
    }
    if (value.is_array() && value.size() <= kListMax &&
        std::all_of(value.begin(), value.end(),
                    [](const auto& item) { return item.is_string(); })) {
      values_[key] = fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), ","));
      return absl::OkStatus();
    }
    if (value.is_null()) {
      return absl::OkStatus();
    }
    if (value.is_structured()) {
      return Wrong(key, "expected one plain value or a list of texts");
    }
    values_[key] = value.is_string() ? value.get<std::string>() : value.dump();
    return absl::OkStatus();
  }

  absl::Status Wrong(std::string_view key, std::string_view problem) const {
    return absl::InvalidArgumentError(fmt::format("{}: {}: {}", path_, key, problem));
  }

  std::string path_;
  Values values_;
};

absl::StatusOr<Values> ReadFileValues(const ConfigSources& sources, const std::string& path) {
  CW_ASSIGN_OR_RETURN(const std::string text, sources.read_file(path));
  const absl::StatusOr<codec::Json> parsed = codec::ParseYaml(text);
  if (!parsed.ok()) {
    return Annotate(parsed.status(), path);
  }
  if (parsed->is_null()) {
    return Values();
  }
  if (!parsed->is_object()) {
    return absl::InvalidArgumentError(fmt::format("{}: expected a map of settings", path));
  }
  FileReader reader(path);
  CW_RETURN_IF_ERROR(reader.Read(*parsed, ""));
  return reader.TakeValues();
}

absl::StatusOr<Values> FindFile(const ConfigSources& sources, const Arguments& arguments) {
  const auto named = arguments.values.find(kConfigFlag);
  const std::optional<std::string> path =
      named != arguments.values.end() ? std::optional(named->second)
                                      : sources.environment(std::string(kConfigEnvironment));
  if (!path.has_value() || path->empty()) {
    return Values();
  }
  return ReadFileValues(sources, *path);
}

absl::Status SetOne(const Setting& setting, const std::string& value, std::string_view source,
                    Config& config) {
  return Annotate(setting.set(config, value), source);
}

absl::Status Apply(const ConfigSources& sources, const Arguments& arguments, const Values& file,
                   Config& config) {
  for (const Setting& setting : Settings()) {
    const auto flag = arguments.values.find(setting.flag);
    const auto variable = sources.environment(std::string(setting.environment));
    const auto key = setting.key.empty() ? file.end() : file.find(setting.key);
    const bool is_ours = flag != arguments.values.end() || variable.has_value();
    if (flag != arguments.values.end()) {
      CW_RETURN_IF_ERROR(SetOne(setting, flag->second, setting.flag, config));
    } else if (variable.has_value()) {
      CW_RETURN_IF_ERROR(SetOne(setting, *variable, setting.environment, config));
    } else if (key != file.end()) {
      CW_RETURN_IF_ERROR(SetOne(setting, key->second, setting.key, config));
    }
    if (setting.flag == "--node-facts") {
      config.node_facts_must_exist = is_ours;
    }
  }
  return absl::OkStatus();
}

// `text` in lines of at most 90 columns, each behind six blanks.
std::string Indented(std::string_view text) {
  constexpr size_t kColumns = 84;
  std::string lines;
  while (!text.empty()) {
    size_t end = text.size() <= kColumns ? text.size() : text.rfind(' ', kColumns);
    end = std::min(end, text.size());
    lines += fmt::format("      {}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::string HelpText() {
  std::string text =
      "cachewarm-agent: one on each node. Prepares the directories that pods mount, captures what\n"
      "a builder compiled, publishes it, and fetches, verifies and activates bundles before pods\n"
      "come. It does what the NodeCache of its node says and reports in that object's status.\n\n"
      "Usage: cachewarm-agent --store URL [--config FILE] [flags]\n"
      "       cachewarm-agent --print-node-facts [--node-facts FILE]\n\n"
      "A flag beats its environment variable, which beats the file.\n\n";
  text += fmt::format("  {}=FILE\n      YAML file with the keys named below ({})\n", kConfigFlag,
                      kConfigEnvironment);
  for (const Setting& row : Settings()) {
    const std::string key = row.key.empty() ? "" : fmt::format(", key {}", row.key);
    text += fmt::format("  {}\n{}{}", row.flag, Indented(row.help),
                        Indented(fmt::format("default: {}  (environment {}{})", row.fallback,
                                             row.environment, key)));
  }
  text +=
      "  --print-node-facts\n      print GPU type and CPU class of this node as JSON and exit\n"
      "  --version\n      print the version and exit\n  --help\n      print this and exit\n";
  return text;
}

absl::StatusOr<CommandLine> ParseConfig(const ConfigSources& sources) {
  CommandLine out;
  out.config.node_name = sources.host_name;
  CW_ASSIGN_OR_RETURN(const Arguments arguments, SplitArguments(sources.arguments));
  if (arguments.help || arguments.version) {
    out.print = arguments.help ? HelpText() : fmt::format("cachewarm-agent {}\n", sources.version);
    return out;
  }
  CW_ASSIGN_OR_RETURN(const Values file, FindFile(sources, arguments));
  CW_RETURN_IF_ERROR(Apply(sources, arguments, file, out.config));
  out.print_node_facts = arguments.print_node_facts;
  if (out.print_node_facts) {
    return out;
  }
  if (out.config.store.url.empty()) {
    return absl::InvalidArgumentError(
        "--store: not given; name a registry (oci://HOST/BASE) or a directory (layout:///DIR)");
  }
  if (out.config.node_name.empty()) {
    return absl::InvalidArgumentError("--node-name: the host has no name; give one");
  }
  return out;
}

}  // namespace cachewarm::agent
