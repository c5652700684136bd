// SPDX-License-Identifier: Apache-2.0
#include "cli/run/options.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "cli/run/interpreter.h"
#include "cli/signature.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fingerprint/key.h"
#include "lib/http/text/url.h"

namespace cachewarm::cli {
namespace {

constexpr int64_t kQuietSecondsAlone = 60;
constexpr int64_t kQuietSecondsAfterReady = 10;

std::string AbsolutePath(const std::string& path) {
  std::string normal = std::filesystem::absolute(path).lexically_normal().string();
  while (normal.size() > 1 && normal.ends_with('/')) {
    normal.pop_back();
  }
  return normal;
}

}  // namespace

std::span<const Option> LifeCycleOptionList() {
  static constexpr std::array<Option, 5> kOptions = {{
      {.name = "cache",
       .value = "KIND",
       .help = "name of a cache to set up and publish, from the list of \"cachewarm caches\" "
               "(default: all that are not opt-in)",
       .repeats = true,
       .check = [](const std::string& name) { return caches::CheckPresetName(name); }},
      {.name = "max-wait",
       .value = "SECONDS",
       .help = "maximum time that the store may delay the command, at its start and again after "
               "its end (default: 60)",
       .range = kWaitSeconds},
      {.name = "ready-url",
       .value = "URL",
       .help = "the command is ready once this URL answers with a status of 2xx",
       .check = [](const std::string& url) { return http::Url::Parse(url).status(); }},
      {.name = "ready-log",
       .value = "REGEX",
       .help = "the command is ready once a line of its output matches this POSIX extended regular "
               "expression; its output becomes a pipe",
       .check = [](const std::string& pattern) { return Pattern::Parse(pattern).status(); }},
      {.name = "ready-after-quiet",
       .value = "SECONDS",
       .help = "publish once the caches have not changed for this time and, with --ready-url or "
               "--ready-log, the command is ready (default: 10 with one of these options, else 60; "
               "0: only after the end of the command)",
       .range = kWaitSeconds},
  }};
  return kOptions;
}

absl::StatusOr<LifeCycle> ParseLifeCycle(const Arguments& arguments) {
  LifeCycle cycle{.max_wait = std::chrono::seconds(arguments.Number("max-wait", 60)),
                  .ready_url = arguments.Value("ready-url")};
  cycle.rules.by_url = !cycle.ready_url.empty();
  if (const std::string pattern = arguments.Value("ready-log"); !pattern.empty()) {
    CW_ASSIGN_OR_RETURN(cycle.ready_log, Pattern::Parse(pattern));
    cycle.rules.by_log = true;
  }
  const bool has_signal = cycle.rules.by_url || cycle.rules.by_log;
  cycle.rules.quiet = std::chrono::seconds(arguments.Number(
      "ready-after-quiet", has_signal ? kQuietSecondsAfterReady : kQuietSecondsAlone));
  cycle.publishes_while_running = cycle.rules.quiet > Duration(0);
  return cycle;
}

absl::StatusOr<caches::CacheTable> ParseCaches(const Arguments& arguments) {
  std::vector<api::CacheChoice> choices;
  for (const std::string& name : arguments.Values("cache")) {
    if (std::none_of(choices.begin(), choices.end(),
                     [&name](const api::CacheChoice& choice) { return choice.name == name; })) {
      choices.push_back({.name = name});
    }
  }
  return caches::CacheTable::Make(choices);
}

std::span<const Option> SourceOptionList() {
  static constexpr std::array<Option, 5> kOptions = {{
      {.name = "store",
       .value = "DIR|URL",
       .help = "store of the bundles: a directory, oci://host/path or layout:///dir (default: "
               "the environment variable CACHEWARM_STORE, else B10FS_CACHE_DIR)"},
      {.name = "name", .value = "NAME", .help = "name of the bundles in the store (default: run)"},
      {.name = "dir",
       .value = "DIR",
       .help = "cache directory (default: ~/.cache/cachewarm/NAME/KEY, where KEY is the first 8 "
               "digits of the key)"},
      kPublicKeyOption,
      {.name = "sign-key",
       .value = "FILE",
       .help = "PEM file of the private key that signs published bundles"},
  }};
  return kOptions;
}

EngineVersions EnginesOf(const Arguments& arguments, const Console& console) {
  return FindEngines({.words = {arguments.Value("python", "python3")},
                      .environment = console.environment,
                      .directory = std::filesystem::current_path().string()});
}

absl::StatusOr<BundleSource> OpenSource(const Arguments& arguments, const Console& console,
                                        EngineVersions engines) {
  std::string store = arguments.Value("store");
  for (const std::string& other :
       {console.Environment("CACHEWARM_STORE"), console.Environment("B10FS_CACHE_DIR")}) {
    store = store.empty() ? other : store;
  }
  if (store.empty()) {
    return UsageError("--store: required; the directory or URL where bundles are stored");
  }
  if (store.find("://") == std::string::npos) {
    store = "layout://" + AbsolutePath(store);
  }
  while (store.ends_with('/')) {
    store.pop_back();
  }
  BundleSource source;
  CW_ASSIGN_OR_RETURN(source.store,
                      OpenReference(fmt::format("{}/{}", store, arguments.Value("name", "run")),
                                    arguments, console));
  CW_ASSIGN_OR_RETURN(source.machine, FindMachine(arguments, std::move(engines)));
  source.keys = {.public_key_file = arguments.Value("key"),
                 .private_key_file = arguments.Value("sign-key")};
  return source;
}

absl::StatusOr<std::string> CacheDirectoryOf(const Arguments& arguments, const Machine& machine,
                                             const Console& console) {
  if (const std::string given = arguments.Value("dir"); !given.empty()) {
    return AbsolutePath(given);
  }
  const std::string cache = console.Environment("XDG_CACHE_HOME");
  const std::string home = console.Environment("HOME");
  if (cache.empty() && home.empty()) {
    return UsageError("--dir: required, because HOME is not set");
  }
  return AbsolutePath(fmt::format("{}/cachewarm/{}/{}", cache.empty() ? home + "/.cache" : cache,
                                  arguments.Value("name", "run"), fingerprint::Key8(machine.key)));
}

}  // namespace cachewarm::cli
