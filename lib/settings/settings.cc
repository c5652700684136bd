// SPDX-License-Identifier: Apache-2.0
#include "lib/settings/settings.h"

#include <algorithm>
#include <map>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"

namespace cachewarm::settings {
namespace {

using Values = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view kConfigFlag = "--config";
constexpr std::string_view kConfigEnvironment = "CACHEWARM_CONFIG";
constexpr size_t kListMax = 64;

// The parsed command line: the value of each given flag, and whether --help or --version is given.
struct Arguments {
  Values values;
  bool help = false;
  bool version = false;
};

// Returns the first row of `rows` whose `member` is `name`, or null.
template <typename Row>
const Row* Find(const std::vector<Row>& rows, std::string_view Row::*member,
                std::string_view name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.*member == name; });
  return found == rows.end() ? nullptr : &*found;
}

absl::StatusOr<Arguments> SplitArguments(const Table& table,
                                         const std::vector<std::string>& arguments) {
  Arguments out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    const Setting* setting = Find(table.settings, &Setting::flag, flag);
    if (argument == "--help" || argument == "-h") {
      out.help = true;
    } else if (argument == "--version") {
      out.version = true;
    } else if (const Request* request = Find(table.requests, &Request::flag, argument)) {
      *request->asked = true;
    } else if (setting == nullptr && flag != kConfigFlag) {
      return absl::InvalidArgumentError(
          fmt::format("unknown argument \"{}\"; --help lists all arguments", argument));
    } else if (equals != std::string::npos) {
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

// Reads the YAML file into pairs of key and text; the key of a nested value is "outer.inner". Joins
// lists by commas.
class FileReader {
 public:
  FileReader(const Table& table, std::string path) : table_(table), path_(std::move(path)) {}

  absl::Status Read(const codec::Json& object, const std::string& prefix) {
    for (const auto& [name, value] : object.items()) {
      const std::string key = prefix + name;
      if (std::find(table_.foreign_keys.begin(), table_.foreign_keys.end(), key) !=
          table_.foreign_keys.end()) {
        continue;
      }
      CW_RETURN_IF_ERROR(value.is_object() && IsOuter(key) ? Read(value, key + ".")
                                                           : ReadOne(key, value));
    }
    return absl::OkStatus();
  }

  Values TakeValues() { return std::move(values_); }

 private:
  bool IsOuter(std::string_view key) const {
    const std::string prefix = fmt::format("{}.", key);
    return std::any_of(table_.settings.begin(), table_.settings.end(),
                       [&](const Setting& row) { return row.key.starts_with(prefix); });
  }

  absl::Status ReadOne(const std::string& key, const codec::Json& value) {
    const Setting* setting = key.empty() ? nullptr : Find(table_.settings, &Setting::key, key);
    if (setting == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("{}: unknown key \"{}\"; --help lists all keys", path_, key));
    }
    const bool is_list = setting->is_list && value.is_array() && value.size() <= kListMax &&
                         std::all_of(value.begin(), value.end(),
                                     [](const codec::Json& item) { return item.is_string(); });
    if (value.is_structured() && !is_list) {
      return absl::InvalidArgumentError(
          fmt::format("{}: {}: must be one plain value{}", path_, key,
                      setting->is_list ? " or a list of at most 64 strings" : ""));
    }
    if (is_list) {
      values_[key] = fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), ","));
    } else if (!value.is_null()) {
      values_[key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
    return absl::OkStatus();
  }

  const Table& table_;
  const std::string path_;
  Values values_;
};

absl::StatusOr<Values> ReadConfigFile(const Table& table, const Sources& sources,
                                      const Arguments& arguments) {
  const auto named = arguments.values.find(kConfigFlag);
  const std::string path = named != arguments.values.end()
                               ? named->second
                               : sources.environment(std::string(kConfigEnvironment)).value_or("");
  if (path.empty()) {
    return Values();
  }
  CW_ASSIGN_OR_RETURN(const std::string text, sources.read_file(path));
  const auto documents = codec::ParseYamlStream(text);
  if (!documents.ok()) {
    return Annotate(documents.status(), path);
  }
  if (documents->empty() || documents->front().is_null()) {
    return Values();
  }
  if (documents->size() > 1 || !documents->front().is_object()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: expected one YAML document with a map of settings", path));
  }
  FileReader reader(table, path);
  CW_RETURN_IF_ERROR(reader.Read(documents->front(), ""));
  return reader.TakeValues();
}

absl::Status Set(const Setting& setting, const Sources& sources, const Arguments& arguments,
                 const Values& file) {
  if (const auto flag = arguments.values.find(setting.flag); flag != arguments.values.end()) {
    return Annotate(setting.set({flag->second, Origin::kFlag}), setting.flag);
  }
  if (const auto value = sources.environment(std::string(setting.environment))) {
    return Annotate(setting.set({*value, Origin::kEnvironment}), setting.environment);
  }
  if (const auto key = file.find(setting.key); key != file.end()) {
    return Annotate(setting.set({key->second, Origin::kFile}), setting.key);
  }
  return absl::OkStatus();
}

// Wraps `text` into lines of at most 90 columns, each indented by six blanks.
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

std::string HelpText(const Table& table) {
  std::string text =
      fmt::format("{}\n\nA flag overrides its environment variable, which overrides the file.\n\n",
                  table.purpose) +
      fmt::format("  {}=FILE\n      YAML file with the keys named below (environment {})\n",
                  kConfigFlag, kConfigEnvironment);
  for (const Setting& row : table.settings) {
    const std::string key = row.key.empty() ? "" : fmt::format(", key {}", row.key);
    text += fmt::format("  {}\n{}{}", row.flag, Indented(row.help),
                        Indented(fmt::format("default: {}  (environment {}{})", row.fallback,
                                             row.environment, key)));
  }
  for (const Request& row : table.requests) {
    text += fmt::format("  {}\n{}", row.flag, Indented(row.help));
  }
  text += "  --version\n      print the version and exit\n  --help\n      print this and exit\n";
  return text;
}

absl::StatusOr<std::optional<std::string>> Read(const Table& table, const Sources& sources) {
  CW_ASSIGN_OR_RETURN(const Arguments arguments, SplitArguments(table, sources.arguments));
  if (arguments.help) {
    return HelpText(table);
  }
  if (arguments.version) {
    return fmt::format("{} {}\n", table.program, sources.version);
  }
  CW_ASSIGN_OR_RETURN(const Values file, ReadConfigFile(table, sources, arguments));
  for (const Setting& setting : table.settings) {
    CW_RETURN_IF_ERROR(Set(setting, sources, arguments, file));
  }
  return std::nullopt;
}

}  // namespace cachewarm::settings
