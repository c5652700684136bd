// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cli/child.h"
#include "cli/collect.h"
#include "cli/commands/commands.h"
#include "cli/facts.h"
#include "cli/reference.h"
#include "cli/signature.h"
#include "cli/tree.h"
#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/bundle/signature/signature.h"
#include "lib/bundle/transfer.h"
#include "lib/fs/tree.h"

namespace cachewarm::cli {
namespace {

constexpr mode_t kTreeMode = 0755;
constexpr int kCommandNotFound = 127;

// Everything that one run needs, found before the command starts.
struct RunContext {
  OpenedReference store;
  Machine machine;
  std::string tag;
  bundle::KeyFiles keys;
};

// "DIR" is a layout below which every name has its repository.
absl::StatusOr<RunContext> MakeRunContext(const Arguments& arguments, const Console& console) {
  std::string store = arguments.Value("store");
  if (store.find("://") == std::string::npos) {
    store = "layout://" + std::filesystem::absolute(store).lexically_normal().string();
  }
  while (store.ends_with('/')) {
    store.pop_back();
  }
  RunContext context;
  CW_ASSIGN_OR_RETURN(context.store,
                      OpenReference(fmt::format("{}/{}", store, arguments.Value("name", "run")),
                                    arguments, console));
  CW_ASSIGN_OR_RETURN(context.machine, FindMachine(arguments));
  context.tag = TagOf(context.machine);
  context.keys = {.public_key_file = arguments.Value("key"),
                  .private_key_file = arguments.Value("sign-key")};
  return context;
}

absl::StatusOr<std::string> DirectoryOf(const Arguments& arguments, const Console& console) {
  std::string directory = arguments.Value("dir");
  if (directory.empty()) {
    const std::string cache = console.Environment("XDG_CACHE_HOME");
    const std::string home = console.Environment("HOME");
    if (cache.empty() && home.empty()) {
      return absl::InvalidArgumentError("--dir: is required where HOME is not set");
    }
    directory = fmt::format("{}/cachewarm/{}", cache.empty() ? home + "/.cache" : cache,
                            arguments.Value("name", "run"));
  }
  return std::filesystem::absolute(directory).lexically_normal().string();
}

// The presets, below `directory` instead of a pod's mount. What the caller set stays.
std::map<std::string, std::string> EnvironmentFor(const std::string& directory,
                                                  const Console& console) {
  std::map<std::string, std::string> environment = console.environment;
  for (const api::EnvVar& preset : caches::CacheTable::AllPresets().Env()) {
    std::string value = preset.value;
    if (value.starts_with(api::kMountPath)) {
      value.replace(0, api::kMountPath.size(), directory);
    }
    environment.emplace(preset.name, std::move(value));
  }
  return environment;
}

// Sizes and times of the files that may travel: tells whether the command added anything.
using TreeSnapshot = std::map<std::string, std::pair<int64_t, int64_t>>;

TreeSnapshot TakeSnapshot(const std::string& directory) {
  TreeSnapshot snapshot;
  const auto tree = fs::Dir::Open(directory);
  if (!tree.ok()) {
    return snapshot;
  }
  const absl::Status walked = fs::Walk(*tree, "", {}, [&snapshot](const fs::WalkEntry& entry) {
    if (entry.stat.type == fs::FileType::kFile &&
        caches::CacheTable::AllPresets().Classify(entry.path).carried()) {
      snapshot[entry.path] = {entry.stat.bytes, entry.stat.mtime_ns};
    }
    return fs::WalkNext::kContinue;
  });
  if (!walked.ok()) {
    snapshot.clear();
  }
  return snapshot;
}

// What an earlier run made and nobody used is in the way of a tree.
void RemoveEmptyDirectories(const std::string& directory) {
  const auto tree = fs::Dir::Open(directory);
  for (const std::string& below : caches::CacheTable::AllPresets().Directories()) {
    if (tree.ok()) {
      tree->Remove(below).IgnoreError();
    }
  }
}

absl::Status Fetch(const RunContext& context, const std::string& directory, Console& console) {
  if (!TakeSnapshot(directory).empty()) {
    return absl::OkStatus();
  }
  RemoveEmptyDirectories(directory);
  const bundle::RepositoryRef place = context.store.place();
  CW_ASSIGN_OR_RETURN(const Digest digest,
                      context.store.store->ResolveTag(place.repository, context.tag, console.stop));
  CW_RETURN_IF_ERROR(CheckKey(context.store, digest, context.keys.public_key_file, console.stop));
  CW_ASSIGN_OR_RETURN(const bundle::Bundle found, bundle::ReadBundle(place, digest, console.stop));
  Progress progress(console, "fetching", false);
  return MakeTree(place, found, {.directory = directory}, progress, console.stop);
}

// The store has nothing for this key: an earlier run could not reach it.
bool IsMissing(const RunContext& context, const Console& console) {
  return absl::IsNotFound(
      context.store.store->ResolveTag(context.store.reference.repository, context.tag, console.stop)
          .status());
}

absl::Status Publish(const RunContext& context, const std::string& directory, Console& console) {
  CW_ASSIGN_OR_RETURN(const fs::Dir tree, fs::Dir::Open(directory));
  CW_ASSIGN_OR_RETURN(Collection collection, CollectTree(tree, caches::CacheTable::AllPresets()));
  if (collection.files.empty()) {
    return absl::OkStatus();
  }
  std::optional<bundle::PrivateKey> key;
  if (const std::string& file = context.keys.private_key_file; !file.empty()) {
    CW_ASSIGN_OR_RETURN(key, bundle::ReadPrivateKey(file));
  }
  const bundle::Facts facts = FactsOf(context.machine, collection);
  // The command has ended, often by the very signal that stops us: its work is kept all the same.
  CW_ASSIGN_OR_RETURN(const bundle::Publication published,
                      bundle::Publish(context.store.place(), std::move(collection.files), facts,
                                      {.tag = context.tag}, std::stop_token()));
  if (key.has_value()) {
    CW_RETURN_IF_ERROR(
        bundle::Sign(context.store.place(), published.digest, *key, std::stop_token()).status());
  }
  console.err << fmt::format("cachewarm run: kept {} files, {}, for the next start\n",
                             published.files, FormatBytes(published.bytes));
  return absl::OkStatus();
}

void Warn(const absl::Status& status, std::string_view consequence, Console& console) {
  if (!status.ok() && !absl::IsNotFound(status)) {
    console.err << fmt::format("cachewarm run: {}; {}\n", Message(status), consequence);
  }
}

absl::Status MakeDirectories(const std::string& directory) {
  for (const std::string& below : caches::CacheTable::AllPresets().Directories()) {
    CW_RETURN_IF_ERROR(
        fs::Dir::OpenOrMake(fmt::format("{}/{}", directory, below), kTreeMode).status());
  }
  return absl::OkStatus();
}

absl::Status PrepareTree(const absl::StatusOr<RunContext>& context, const std::string& directory,
                         Console& console) {
  CW_RETURN_IF_ERROR(context.status());
  const std::filesystem::path parent = std::filesystem::path(directory).parent_path();
  CW_RETURN_IF_ERROR(fs::Dir::OpenOrMake(parent.string(), kTreeMode).status());
  return Fetch(*context, directory, console);
}

absl::StatusOr<int> Run(const Arguments& arguments, Console& console) {
  if (arguments.Value("store").empty()) {
    return absl::InvalidArgumentError("--store: say where bundles are kept, a directory or a URL");
  }
  CW_ASSIGN_OR_RETURN(const std::string directory, DirectoryOf(arguments, console));
  const auto context = MakeRunContext(arguments, console);
  if (absl::IsInvalidArgument(context.status())) {
    return context.status();
  }
  Warn(PrepareTree(context, directory, console), "starting cold", console);
  Warn(MakeDirectories(directory), "engines must make them", console);
  const TreeSnapshot before = TakeSnapshot(directory);
  const auto code = RunChild(
      {.words = arguments.rest(), .environment = EnvironmentFor(directory, console)}, console.stop);
  if (absl::IsNotFound(code.status())) {
    console.err << fmt::format("cachewarm run: {}\n", Message(code.status()));
    return kCommandNotFound;
  }
  CW_RETURN_IF_ERROR(code.status());
  if (context.ok() && (TakeSnapshot(directory) != before || IsMissing(*context, console))) {
    Warn(Publish(*context, directory, console), "nothing is kept", console);
  }
  return *code;
}

}  // namespace

Verb RunVerb() {
  Verb verb{
      .name = "run",
      .operands = "",
      .summary = "Run a model server with its compile caches kept between starts",
      .text =
          "Points every known compile cache below one directory, fills it from the store when\n"
          "it is empty, runs the command, and publishes what was compiled when the command\n"
          "has ended. Variables that are set already stay as they are. Whatever goes wrong\n"
          "with the store, the command runs. The exit code is the command's. With --key only a\n"
          "bundle that was signed with it is used, as --sign-key does with what is published.\n\n"
          "Some engines keep absolute paths: use the same --dir on every machine.\n\n"
          "  cachewarm run --store /srv/bundles --name llama -- vllm serve llama\n",
      .options = {{.name = "store",
                   .value = "DIR|URL",
                   .help = "where bundles are kept: a directory, oci://host/path or layout:///dir"},
                  {.name = "name", .value = "NAME", .help = "what runs (default: run)"},
                  {.name = "dir",
                   .value = "DIR",
                   .help = "the cache directory (default: ~/.cache/cachewarm/NAME)"},
                  PublicKeyOption(),
                  {.name = "sign-key",
                   .value = "FILE",
                   .help = "private key (PEM) that signs what is published"}},
      .run = Run,
      .takes_rest = true};
  verb.options.insert(verb.options.end(), MachineOptionList().begin(), MachineOptionList().end());
  verb.options.insert(verb.options.end(), StoreOptionList().begin(), StoreOptionList().end());
  return verb;
}

}  // namespace cachewarm::cli
