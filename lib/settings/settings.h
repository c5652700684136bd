// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// How a program that runs in the cluster is told what to do: by flags, environment variables and
// one YAML file. Pure: whatever comes from outside is an argument.
namespace cachewarm::settings {

// Where settings come from.
struct Sources {
  std::vector<std::string> arguments;  // without the program's name
  std::function<std::optional<std::string>(const std::string& name)> environment;
  // Whole content of a file; an error names the path.
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;
  std::string host_name;  // the default for the name of this process or node
  std::string version;
};

enum class Origin { kFlag, kEnvironment, kFile };

struct Given {
  std::string value;
  Origin origin = Origin::kFlag;
};

// Checks a value and keeps it, where it was made for (values.h). Its error says what is wrong with
// the value; Read() puts the name of the setting before it.
using Setter = std::function<absl::Status(const Given& given)>;

// One setting: every place it can come from and what it does.
struct Setting {
  std::string_view flag;
  std::string_view environment;
  std::string_view key;  // in the file, "registry.caFile" when nested; empty: not settable there
  std::string_view fallback;  // what --help calls the default
  Setter set;
  std::string_view help;
  bool is_switch = false;  // the flag may stand without a value and then means "true"
  bool is_list = false;    // "a,b" in flags and variables, in the file a list of texts as well
};

// A flag without a value that asks for something else than the usual work.
struct Request {
  std::string_view flag;
  std::string_view help;
  bool* asked;
};

// Everything that one program can be told.
struct Table {
  std::string_view program;       // "cachewarm-agent"
  std::string_view purpose;       // the beginning of --help, with the usage
  std::vector<Setting> settings;  // in the order of --help
  std::vector<Request> requests;
  // Keys of the same file that are another program's: accepted and not looked at.
  std::vector<std::string_view> foreign_keys;
};

// The text of --help.
std::string HelpText(const Table& table);

// Sets everything that was given: a flag beats its environment variable, which beats the file named
// by --config or CACHEWARM_CONFIG. Unknown flags and keys and wrong values are INVALID_ARGUMENT
// with the name and the remedy; a file that cannot be read is the error of `read_file`. A key
// without a value counts as not given.
// For --help and --version: the text to print before a successful exit, with nothing set.
absl::StatusOr<std::optional<std::string>> Read(const Table& table, const Sources& sources);

}  // namespace cachewarm::settings
