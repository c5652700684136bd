// SPDX-License-Identifier: Apache-2.0
#include "lib/settings/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/settings/values.h"

namespace cachewarm::settings {
namespace {

using ::testing::HasSubstr;

// A program with one setting of each kind.
struct Example {
  std::string root = "default";
  std::string hosts = "default";
  bool elect = false;
  Origin origin = Origin::kFile;
  bool print_facts = false;

  Table ToTable() {
    return {
        .program = "example",
        .purpose = "example: shows each shape.\n\nUsage: example [flags]",
        .settings = {{"--root", "root", Text(root), "directory", "/root"},
                     {"--hosts", "registry.hosts", {Text(hosts).set, "none", Form::kList}, "hosts"},
                     {"--elect", "elect", Switch(elect), "whether there is an election"},
                     {"--origin",
                      "origin",
                      {[this](const GivenValue& given) {
                         origin = given.origin;
                         return absl::OkStatus();
                       },
                       "none"},
                      "keeps where it came from"},
                     {"--secret-file", "", Text(root), "is not settable in the file"}},
        .requests = {{"--print-facts", "print facts and exit", &print_facts}},
        .foreign_keys = {"others", "registry.others"}};
  }
};

struct Input {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> files;
};

absl::StatusOr<std::optional<std::string>> ReadInto(Example& example, const Input& input) {
  return Read(example.ToTable(),
              {.arguments = input.arguments,
               .environment = [&](const std::string& name) -> std::optional<std::string> {
                 const auto found = input.environment.find(name);
                 return found == input.environment.end() ? std::nullopt
                                                         : std::optional(found->second);
               },
               .read_file = [&](const std::string& path) -> absl::StatusOr<std::string> {
                 const auto found = input.files.find(path);
                 if (found == input.files.end()) {
                   return absl::NotFoundError(path + ": no such file");
                 }
                 return found->second;
               },
               .host_name = "host",
               .version = "9.8.7"});
}

TEST(Settings, NoSourcesSetNothing) {
  Example example;
  const auto print = ReadInto(example, {});
  ASSERT_TRUE(print.ok()) << print.status();
  EXPECT_EQ(*print, std::nullopt);
  EXPECT_EQ(example.root, "default");
  EXPECT_FALSE(example.print_facts);
}

TEST(Settings, FlagBeatsEnvironmentBeatsFile) {
  Input input{.arguments = {"--config=/c", "--root", "flag", "--origin=x"},
              .environment = {{"CACHEWARM_ROOT", "variable"}, {"CACHEWARM_ORIGIN", "x"}},
              .files = {{"/c", "root: file\norigin: x\n"}}};
  Example example;
  ASSERT_TRUE(ReadInto(example, input).ok());
  EXPECT_EQ(example.root, "flag");
  EXPECT_EQ(example.origin, Origin::kFlag);
  input.arguments = {"--config=/c"};
  ASSERT_TRUE(ReadInto(example, input).ok());
  EXPECT_EQ(example.root, "variable");
  EXPECT_EQ(example.origin, Origin::kEnvironment);
  input.environment = {{"CACHEWARM_CONFIG", "/c"}};
  input.arguments = {};
  ASSERT_TRUE(ReadInto(example, input).ok());
  EXPECT_EQ(example.root, "file");
  EXPECT_EQ(example.origin, Origin::kFile);
}

TEST(Settings, ConfigFlagBeatsItsVariable) {
  Example example;
  ASSERT_TRUE(ReadInto(example, {.arguments = {"--config=/a"},
                                 .environment = {{"CACHEWARM_CONFIG", "/b"}},
                                 .files = {{"/a", "root: a"}, {"/b", "root: b"}}})
                  .ok());
  EXPECT_EQ(example.root, "a");
}

TEST(Settings, ReadsValuesListsAndNestedKeysFromFile) {
  struct Case {
    std::string file;
    std::string root;
    std::string hosts;
  };
  const std::vector<Case> cases = {
      {"", "default", "default"},
      {"# only a comment\n", "default", "default"},
      {"root:\n", "default", "default"},
      {"root: 12", "12", "default"},
      {"root: \"012\"", "012", "default"},
      {"root: true", "true", "default"},
      {"registry: {hosts: [\"a:1\", b]}", "default", "a:1,b"},
      {"registry: {hosts: \"a,b\"}", "default", "a,b"},
      {"registry: {hosts: []}", "default", ""},
      {"others: {of: {any: [shape]}}\nregistry: {others: 1}\nroot: x", "x", "default"},
  };
  for (const Case& each : cases) {
    Example example;
    const auto print =
        ReadInto(example, {.arguments = {"--config=/c"}, .files = {{"/c", each.file}}});
    ASSERT_TRUE(print.ok()) << each.file << print.status();
    EXPECT_EQ(example.root, each.root) << each.file;
    EXPECT_EQ(example.hosts, each.hosts) << each.file;
  }
}

TEST(Settings, SwitchNeedsNoValue) {
  Example example;
  ASSERT_TRUE(ReadInto(example, {.arguments = {"--elect", "--root=x"}}).ok());
  EXPECT_TRUE(example.elect);
  ASSERT_TRUE(ReadInto(example, {.arguments = {"--elect=false"}}).ok());
  EXPECT_FALSE(example.elect);
}

TEST(Settings, LastOfSeveralEqualFlagsCounts) {
  Example example;
  ASSERT_TRUE(ReadInto(example, {.arguments = {"--root=a", "--root", "b"}}).ok());
  EXPECT_EQ(example.root, "b");
}

TEST(Settings, VariableHasTheNameOfTheFlag) {
  Example example;
  EXPECT_EQ(example.ToTable().settings.back().Environment(), "CACHEWARM_SECRET_FILE");
}

TEST(Settings, DefaultIsTheInitialValueUnlessFallbackIsSet) {
  Example example;
  example.elect = true;
  const Table table = example.ToTable();
  EXPECT_EQ(table.settings[0].Default(), "/root");
  EXPECT_EQ(table.settings[1].Default(), "none");
  EXPECT_EQ(table.settings[2].Default(), "true");
}

TEST(Settings, RecordsRequest) {
  Example example;
  const auto print = ReadInto(example, {.arguments = {"--print-facts", "--root=x"}});
  ASSERT_TRUE(print.ok()) << print.status();
  EXPECT_TRUE(example.print_facts);
  EXPECT_EQ(example.root, "x");
}

TEST(Settings, ErrorsNameTheSettingAndTheRemedy) {
  struct Case {
    Input input;
    std::string expected;
  };
  const auto file = [](const char* text) {
    return Input{.arguments = {"--config=/c"}, .files = {{"/c", text}}};
  };
  const std::string list = "[" + [] {
    std::string items;
    for (int i = 0; i < 65; ++i) {
      items += "a,";
    }
    return items;
  }() + "]";
  const std::string long_list = "registry: {hosts: " + list + "}";
  const std::vector<Case> cases = {
      {{.arguments = {"--rot=x"}}, "--rot: unknown option; did you mean --root?"},
      {{.arguments = {"--unlike=x"}}, "--unlike: unknown option; --help lists all options"},
      {{.arguments = {"--", "word"}}, "unknown argument \"word\"; --help lists"},
      {{.arguments = {"word"}}, "unknown argument \"word\"; --help lists"},
      {{.arguments = {"--print-facts=1"}}, "--print-facts: takes no value"},
      {{.arguments = {"--root"}}, "--root: requires a value: --root VALUE"},
      {{.arguments = {"--config"}}, "--config: requires a value: --config FILE"},
      {{.arguments = {"--elect=yes"}}, "--elect: \"yes\" is neither"},
      {{.environment = {{"CACHEWARM_ELECT", ""}}}, "CACHEWARM_ELECT: \"\" is neither"},
      {file("elect: 1"), "elect: \"1\" is neither"},
      {{.arguments = {"--config=/none"}}, "/none: no such file"},
      {file("rot: x"), "/c: unknown key \"rot\"; did you mean root?"},
      {file("unlike: x"), "/c: unknown key \"unlike\"; --help lists all keys"},
      {file("\"\": x"), "/c: unknown key \"\""},
      {file("registry: {host: x}"), "/c: unknown key \"registry.host\""},
      {file("registry: x"), "/c: unknown key \"registry\""},
      {file("root: {a: b}"), "/c: root: must be one plain value"},
      {file("root: [a]"), "/c: root: must be one plain value"},
      {file("registry: {hosts: [1]}"), "/c: registry.hosts: must be one plain value or a list"},
      {file(long_list.c_str()), "/c: registry.hosts: must be one plain value or a list"},
      {file("- a"), "/c: expected one YAML document with a map of settings"},
      {file("text"), "/c: expected one YAML document with a map of settings"},
      {file("root: ["), "/c: "},
      {file("root: a\n---\nroot: b\n"), "/c: "},
  };
  for (const Case& each : cases) {
    Example example;
    const absl::Status refused = ReadInto(example, each.input).status();
    ASSERT_FALSE(refused.ok()) << each.expected;
    EXPECT_THAT(Message(refused), HasSubstr(each.expected));
  }
}

TEST(Settings, HelpAndVersionBeatOtherFlags) {
  for (const char* flag : {"--help", "-h"}) {
    Example example;
    EXPECT_EQ(**ReadInto(example, {.arguments = {"--elect=yes", flag}}),
              HelpText(example.ToTable()));
  }
  Example example;
  EXPECT_EQ(**ReadInto(example, {.arguments = {"--version", "--config=/none"}}), "example 9.8.7\n");
}

TEST(Settings, HelpListsFlagVariableAndKey) {
  Example example;
  Table table = example.ToTable();
  const std::string lengthy = "word " + std::string(70, 'x') + " " + std::string(70, 'y');
  table.settings.front().help = lengthy;
  const std::string help = HelpText(table);
  EXPECT_TRUE(help.starts_with(table.purpose));
  for (const Setting& setting : table.settings) {
    EXPECT_THAT(help, HasSubstr(setting.flag));
    EXPECT_THAT(help, HasSubstr(setting.Environment()));
    EXPECT_THAT(help, HasSubstr(setting.key));
    EXPECT_THAT(help, HasSubstr(fmt::format("default: {}  (", setting.Default())));
  }
  EXPECT_THAT(help, HasSubstr("--print-facts\n      print facts and exit\n"));
  EXPECT_THAT(help, HasSubstr("--config=FILE"));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 90U) << line;
  }
}

}  // namespace
}  // namespace cachewarm::settings
