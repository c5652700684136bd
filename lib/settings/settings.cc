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
#include "lib/settings/arguments.h"

namespace cachewarm::settings {
namespace {

using Values = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view kConfigEnvironment = "CACHEWARM_CONFIG";
constexpr size_t kListMax = 64;

std::vector<Option> OptionsOf(const Table& table) {
  std::vector<Option> options = {{.name = "help", .letter = 'h'},
                                 {.name = "version"},
                                 {.name = "config", .value = "FILE", .repeats = true}};
  for (const Setting& row : table.settings) {
    options.push_back({.name = row.flag.substr(2),
                       .value = "VALUE",
                       .repeats = true,  // the last value counts
                       .is_switch = row.variable.form == Form::kSwitch});
  }
  for (const Request& row : table.requests) {
    options.push_back({.name = row.flag.substr(2)});
  }
  return options;
}

absl::StatusOr<Arguments> ParseArguments(const Table& table, const Sources& sources) {
  CW_ASSIGN_OR_RETURN(Arguments arguments, Arguments::Parse(sources.arguments, OptionsOf(table)));
  for (const auto* words : {&arguments.positionals(), &arguments.rest()}) {
    if (!words->empty()) {
      return absl::InvalidArgumentError(
          fmt::format("unknown argument \"{}\"; --help lists all arguments", words->front()));
    }
  }
  return arguments;
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

  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const Setting& row : table_.settings) {
      if (!row.key.empty()) {
        keys.emplace_back(row.key);
      }
    }
    return keys;
  }

  absl::Status ReadOne(const std::string& key, const codec::Json& value) {
    const auto setting =
        std::find_if(table_.settings.begin(), table_.settings.end(),
                     [&](const Setting& row) { return !key.empty() && row.key == key; });
    if (setting == table_.settings.end()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: unknown key \"{}\"; {}", path_, key,
                      Suggestion(key, Keys(), "--help lists all keys")));
    }
    const bool takes_list = setting->variable.form == Form::kList;
    const bool is_list = takes_list && value.is_array() && value.size() <= kListMax &&
                         std::all_of(value.begin(), value.end(),
                                     [](const codec::Json& item) { return item.is_string(); });
    if (value.is_structured() && !is_list) {
      return absl::InvalidArgumentError(
          fmt::format("{}: {}: must be one plain value{}", path_, key,
                      takes_list ? " or a list of at most 64 strings" : ""));
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
  const std::string path = arguments.Has("config")
                               ? arguments.Value("config")
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
  const Setter& set = setting.variable.set;
  if (const std::string_view name = setting.flag.substr(2); arguments.Has(name)) {
    return Annotate(set({arguments.Value(name), Origin::kFlag}), setting.flag);
  }
  const std::string environment = setting.Environment();
  if (const auto value = sources.environment(environment)) {
    return Annotate(set({*value, Origin::kEnvironment}), environment);
  }
  if (const auto key = file.find(setting.key); key != file.end()) {
    return Annotate(set({key->second, Origin::kFile}), setting.key);
  }
  return absl::OkStatus();
}

std::string Paragraph(std::string_view text) {
  constexpr size_t kIndent = 6;
  return fmt::format("{:{}}{}\n", "", kIndent, Wrapped(text, kIndent));
}

}  // namespace

std::string Setting::Environment() const {
  std::string name = "CACHEWARM";
  for (const char c : flag.substr(1)) {
    name += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

std::string Setting::Default() const {
  return fallback.empty() ? variable.initial : std::string(fallback);
}

std::string HelpText(const Table& table) {
  std::string text =
      fmt::format("{}\n\nA flag overrides its environment variable, which overrides the file.\n\n",
                  table.purpose) +
      fmt::format("  --config=FILE\n{}",
                  Paragraph(fmt::format("YAML file with the keys named below (environment {})",
                                        kConfigEnvironment)));
  for (const Setting& row : table.settings) {
    const std::string key = row.key.empty() ? "" : fmt::format(", key {}", row.key);
    text += fmt::format("  {}\n{}{}", row.flag, Paragraph(row.help),
                        Paragraph(fmt::format("default: {}  (environment {}{})", row.Default(),
                                              row.Environment(), key)));
  }
  for (const Request& row : table.requests) {
    text += fmt::format("  {}\n{}", row.flag, Paragraph(row.help));
  }
  text += "  --version\n      print the version and exit\n  --help\n      print this and exit\n";
  return text;
}

absl::StatusOr<std::optional<std::string>> Read(const Table& table, const Sources& sources) {
  CW_ASSIGN_OR_RETURN(const Arguments arguments, ParseArguments(table, sources));
  if (arguments.Has("help")) {
    return HelpText(table);
  }
  if (arguments.Has("version")) {
    return fmt::format("{} {}\n", table.program, sources.version);
  }
  for (const Request& request : table.requests) {
    *request.asked = arguments.Has(request.flag.substr(2));
  }
  CW_ASSIGN_OR_RETURN(const Values file, ReadConfigFile(table, sources, arguments));
  for (const Setting& setting : table.settings) {
    CW_RETURN_IF_ERROR(Set(setting, sources, arguments, file));
  }
  return std::nullopt;
}

}  // namespace cachewarm::settings
