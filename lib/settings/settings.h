// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// Reads the settings of the operator and the agent from flags, environment variables and one YAML
// file. Pure: the caller passes all inputs (struct Sources).
namespace cachewarm::settings {

// The sources of settings.
struct Sources {
  std::vector<std::string> arguments;  // without the program's name
  std::function<std::optional<std::string>(const std::string& name)> environment;
  // Returns the whole content of a file; errors name the path.
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;
  std::string host_name;  // default for settings that name this process or node
  std::string version;
};

enum class Origin { kFlag, kEnvironment, kFile };

struct GivenValue {
  std::string value;
  Origin origin = Origin::kFlag;
};

// Checks a value and stores it in the variable that was passed when the setter was made (values.h).
// An error describes the problem; Read() prefixes the name of the setting.
using Setter = std::function<absl::Status(const GivenValue& given)>;

// How the values of a setting are written.
enum class Form {
  kPlain,
  kSwitch,  // the flag without a value means "true"
  kList,    // "a,b"; in the file also a YAML list
};

// The variable that a setting writes (values.h).
struct Variable {
  Setter set;
  std::string initial;  // the value when the table is made; a text for --help
  Form form = Form::kPlain;
};

// One setting: where its value comes from, and what it means.
struct Setting {
  std::string_view flag;  // "--root"
  std::string_view key;   // key in the file, "outer.inner" if nested; empty: not in the file
  Variable variable;
  std::string_view help;
  std::string_view fallback{};  // the default in words, if the initial value does not show it

  std::string Environment() const;  // "CACHEWARM_ROOT" for "--root"
  std::string Default() const;
};

// A flag without a value that makes the program do something other than its usual work.
struct Request {
  std::string_view flag;
  std::string_view help;
  bool* asked;  // set to true if the flag is given
};

// All settings of one program.
struct Table {
  std::string_view program;       // "cachewarm-agent"
  std::string_view purpose;       // beginning of the text of --help, with the usage
  std::vector<Setting> settings;  // in the order of --help
  std::vector<Request> requests;
  // Keys of another program that reads the same file: accepted and ignored.
  std::vector<std::string_view> foreign_keys;
};

// Returns the text of --help.
std::string HelpText(const Table& table);

// Applies all given settings: a flag overrides its environment variable, which overrides the file
// named by --config or CACHEWARM_CONFIG. A key without a value counts as not given. For --help and
// --version, applies nothing and returns the text to print; otherwise returns nullopt. Errors:
// INVALID_ARGUMENT for an unknown flag, an unknown key or a wrong value, which the message names
// with the remedy; or the error of `read_file`.
absl::StatusOr<std::optional<std::string>> Read(const Table& table, const Sources& sources);

}  // namespace cachewarm::settings
