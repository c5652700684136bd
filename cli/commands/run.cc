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

// Inputs of one run, resolved before the command starts.
struct RunContext {
  OpenedReference store;
  Machine machine;
  std::string tag;
  bundle::KeyFiles keys;
};

// Resolves the options. A --store without a scheme is a directory, used as an image layout with one
// repository for each --name.
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
      return absl::InvalidArgumentError("--dir: required, because HOME is not set");
    }
    directory = fmt::format("{}/cachewarm/{}", cache.empty() ? home + "/.cache" : cache,
                            arguments.Value("name", "run"));
  }
  return std::filesystem::absolute(directory).lexically_normal().string();
}

// Returns the environment of the command. The variables of the presets point below `directory`
// instead of the mount path of pods. Variables that are already set are kept.
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

// Size and modification time of each file that may be in a bundle, by path. Two snapshots show
// whether the command added or changed a file.
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

// Removes the empty directories of an earlier run, because an unpacked bundle can only replace an
// empty directory.
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

// Returns true if the store has no bundle of this key, for example because an earlier run could not
// reach the store and did not publish.
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
  // Publish even if a stop was requested: the signal that ended the command often stops this
  // process as well.
  CW_ASSIGN_OR_RETURN(const bundle::Publication published,
                      bundle::Publish(context.store.place(), std::move(collection.files), facts,
                                      {.tag = context.tag}, std::stop_token()));
  if (key.has_value()) {
    CW_RETURN_IF_ERROR(
        bundle::Sign(context.store.place(), published.digest, *key, std::stop_token()).status());
  }
  console.err << fmt::format("cachewarm run: published {} files, {}, for the next start\n",
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
    return absl::InvalidArgumentError(
        "--store: required; the directory or URL where bundles are stored");
  }
  CW_ASSIGN_OR_RETURN(const std::string directory, DirectoryOf(arguments, console));
  const auto context = MakeRunContext(arguments, console);
  if (absl::IsInvalidArgument(context.status())) {
    return context.status();
  }
  Warn(PrepareTree(context, directory, console), "starting cold", console);
  Warn(MakeDirectories(directory), "the command must create its cache directories", console);
  const TreeSnapshot before = TakeSnapshot(directory);
  const auto code = RunChild(
      {.words = arguments.rest(), .environment = EnvironmentFor(directory, console)}, console.stop);
  if (absl::IsNotFound(code.status())) {
    console.err << fmt::format("cachewarm run: {}\n", Message(code.status()));
    return kCommandNotFound;
  }
  CW_RETURN_IF_ERROR(code.status());
  if (context.ok() && (TakeSnapshot(directory) != before || IsMissing(*context, console))) {
    Warn(Publish(*context, directory, console), "nothing published", console);
  }
  return *code;
}

}  // namespace

Verb RunVerb() {
  Verb verb{
      .name = "run",
      .operands = "",
      .summary = "Run a command and keep its compile caches between starts",
      .text =
          "Sets the environment variables of all known compile caches to directories below --dir,\n"
          "fetches the bundle of this machine from --store if --dir is empty, runs the command,\n"
          "and publishes new cache files when the command exits. Does not need Kubernetes.\n"
          "Variables that are already set are kept. If the store fails, the command starts cold.\n"
          "The exit code is that of the command.\n\n"
          "With --key only bundles signed by that key are used; --sign-key signs the bundles that\n"
          "are published. Some engines store absolute paths in their caches: use the same --dir\n"
          "on every machine.\n\n"
          "  cachewarm run --store /srv/bundles --name llama -- vllm serve llama\n",
      .options = {{.name = "store",
                   .value = "DIR|URL",
                   .help = "store of the bundles (required): a directory, oci://host/path or "
                           "layout:///dir"},
                  {.name = "name",
                   .value = "NAME",
                   .help = "name of the bundles in the store (default: run)"},
                  {.name = "dir",
                   .value = "DIR",
                   .help = "cache directory (default: ~/.cache/cachewarm/NAME)"},
                  PublicKeyOption(),
                  {.name = "sign-key",
                   .value = "FILE",
                   .help = "PEM file of the private key that signs published bundles"}},
      .run = Run,
      .takes_rest = true};
  verb.options.insert(verb.options.end(), MachineOptionList().begin(), MachineOptionList().end());
  verb.options.insert(verb.options.end(), StoreOptionList().begin(), StoreOptionList().end());
  return verb;
}

}  // namespace cachewarm::cli
