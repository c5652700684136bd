// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/megacache/objects.h"
#include "cli/megacache/placement.h"
#include "cli/run/directory.h"
#include "cli/run/environment.h"
#include "cli/run/options.h"
#include "cli/run/publish.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/fs/file.h"
#include "lib/megacache/artifact.h"
#include "lib/megacache/kernels.h"

namespace cachewarm::cli {
namespace {

constexpr int64_t kArtifactBytesMax = 4LL << 30;
constexpr char kHeaders[] = "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS";

// An artifact, and the files to create from it in the cache directory.
struct Artifact {
  std::unique_ptr<const std::string> bytes;
  std::vector<megacache::Entry> entries;  // point into `bytes`
  std::optional<fs::Dir> inductor;  // Inductor directory of the process that saved the artifact
  ObjectFiles objects;
  std::vector<ImportedFile> files;  // point into `entries`
};

absl::StatusOr<std::optional<fs::Dir>> OpenObjects(const Arguments& arguments,
                                                   const Console& console) {
  if (const std::string given = arguments.Value("with"); !given.empty()) {
    auto opened = OpenInductorDirectory(given);
    CW_RETURN_IF_ERROR(Annotate(opened.status(), "--with"));
    return *std::move(opened);
  }
  const std::string inherited = console.Environment("TORCHINDUCTOR_CACHE_DIR");
  if (inherited.empty() || !std::filesystem::is_directory(inherited)) {
    return std::nullopt;
  }
  CW_ASSIGN_OR_RETURN(fs::Dir opened, OpenInductorDirectory(inherited));
  return opened;
}

absl::StatusOr<Artifact> ReadArtifact(const Arguments& arguments, const Console& console) {
  const std::string& file = arguments.positionals()[0];
  Artifact artifact;
  CW_ASSIGN_OR_RETURN(std::string bytes, fs::ReadNamedFile(file, kArtifactBytesMax));
  artifact.bytes = std::make_unique<const std::string>(std::move(bytes));
  const auto annotate = [&file](const absl::Status& status) { return Annotate(status, file); };
  auto entries = megacache::Parse(*artifact.bytes, {});
  CW_RETURN_IF_ERROR(annotate(entries.status()));
  if (entries->empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: the artifact has no entries; save it after the first compile", file));
  }
  artifact.entries = *std::move(entries);
  CW_ASSIGN_OR_RETURN(artifact.inductor, OpenObjects(arguments, console));
  CW_ASSIGN_OR_RETURN(artifact.objects, FindObjects(artifact.inductor, artifact.entries));
  auto files = PlanImport(artifact.entries, artifact.objects);
  CW_RETURN_IF_ERROR(annotate(files.status()));
  artifact.files = *std::move(files);
  return artifact;
}

// The cache directory that receives the files. `source` is the bundle that they are also published
// to; nullopt if no store is given.
struct Target {
  std::optional<BundleSource> source;
  Machine machine;
  std::string path;
};

absl::StatusOr<Target> FindTarget(const Arguments& arguments, const Console& console) {
  EngineVersions engines = EnginesOf(arguments, console);
  Target target;
  if (!arguments.Value("store").empty() || !console.Environment("CACHEWARM_STORE").empty() ||
      !console.Environment("B10FS_CACHE_DIR").empty()) {
    CW_ASSIGN_OR_RETURN(target.source, OpenSource(arguments, console, std::move(engines)));
    target.machine = target.source->machine;
  } else {
    CW_ASSIGN_OR_RETURN(target.machine, FindMachine(arguments, std::move(engines)));
  }
  CW_ASSIGN_OR_RETURN(target.path, CacheDirectoryOf(arguments, target.machine, console));
  return target;
}

std::string BundleName(const Target& target) {
  return target.source.has_value()
             ? fmt::format("{}:{}", target.source->store.reference.ToString(), target.source->tag())
             : std::string();
}

// Returns the environment variables with which a process finds the imported entries. torch's keys
// include the setting of precompiled headers, so this setting must be the same as in the process
// that saved the artifact.
std::map<std::string, std::string> VariablesFor(const Artifact& artifact,
                                                const std::string& directory) {
  std::map<std::string, std::string> variables = PresetVariables(directory);
  if (megacache::PrecompilesHeaders(artifact.entries).value_or(false)) {
    variables[kHeaders] = "1";
  }
  return variables;
}

std::map<std::string, int64_t> EntriesByType(const Artifact& artifact) {
  std::map<std::string, int64_t> counts;
  for (const megacache::Entry& entry : artifact.entries) {
    ++counts[entry.type];
  }
  return counts;
}

std::string EntriesText(const Artifact& artifact) {
  std::string text;
  for (const auto& [type, count] : EntriesByType(artifact)) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, type);
  }
  return text;
}

void PrintWarnings(const Artifact& artifact, Console& console) {
  const ObjectFiles& objects = artifact.objects;
  for (const std::string& damaged : objects.damaged) {
    console.err << fmt::format("skipped damaged file: {}\n", damaged);
  }
  if (objects.compiled < objects.kernels) {
    console.err << fmt::format(
        "{} of {} kernels have no compiled object{}: a start that hits an entry with such a kernel "
        "compiles it again; set --with to the TORCHINDUCTOR_CACHE_DIR of the process that saved "
        "the "
        "artifact\n",
        objects.kernels - objects.compiled, objects.kernels,
        artifact.inductor.has_value() ? fmt::format(" in {}", artifact.inductor->name()) : "");
  } else if (objects.kernels > 0) {
    console.err << fmt::format("all {} kernels have their compiled object\n", objects.kernels);
  }
  if (megacache::PrecompilesHeaders(artifact.entries).value_or(false)) {
    console.err << fmt::format(
        "the artifact was saved with {0}=1, and torch's cache keys include this setting: also set "
        "{0}=1 for the process that uses the cache. If the process does not set it, cachewarm sets "
        "it to 0, and the keys do not match\n",
        kHeaders);
  }
}

void Report(const Artifact& artifact, const Target& target, const ImportCounts& counts,
            const Arguments& arguments, Console& console) {
  if (arguments.Has("json")) {
    PrintJson(console, {{"directory", target.path},
                        {"bundle", BundleName(target)},
                        {"entries", EntriesByType(artifact)},
                        {"files", counts.files},
                        {"bytes", counts.bytes},
                        {"present", counts.present},
                        {"kernels", artifact.objects.kernels},
                        {"compiled", artifact.objects.compiled},
                        {"damaged", artifact.objects.damaged},
                        {"environment", VariablesFor(artifact, target.path)}});
    return;
  }
  console.out << (target.source.has_value() ? BundleName(target) : target.path) << '\n';
  console.err << fmt::format("imported {}: {} new files, {}, into {}\n", EntriesText(artifact),
                             counts.files, FormatBytes(counts.bytes), target.path);
  if (counts.present > 0) {
    console.err << fmt::format("{} files were already there\n", counts.present);
  }
  PrintWarnings(artifact, console);
}

// Lists the files that an import would write.
void List(const Artifact& artifact, const Target& target, const Arguments& arguments,
          Console& console) {
  if (arguments.Has("json")) {
    codec::Json files = codec::Json::array();
    for (const ImportedFile& file : artifact.files) {
      files.push_back({{"path", file.path},
                       {"bytes", file.bytes},
                       {"type", file.entry == nullptr ? "object" : file.entry->type}});
    }
    PrintJson(console, {{"directory", target.path},
                        {"bundle", BundleName(target)},
                        {"entries", EntriesByType(artifact)},
                        {"files", files},
                        {"kernels", artifact.objects.kernels},
                        {"compiled", artifact.objects.compiled},
                        {"damaged", artifact.objects.damaged},
                        {"environment", VariablesFor(artifact, target.path)}});
    return;
  }
  for (const ImportedFile& file : artifact.files) {
    console.out << fmt::format("{:<12} {:>10} {}\n",
                               file.entry == nullptr ? "object" : file.entry->type,
                               FormatBytes(file.bytes), file.path);
  }
  console.err << fmt::format(
      "would import {} into {}{}\n", EntriesText(artifact), target.path,
      target.source.has_value() ? fmt::format(" and publish them as {}", BundleName(target)) : "");
  PrintWarnings(artifact, console);
}

absl::StatusOr<int> Import(const Arguments& arguments, Console& console) {
  CW_ASSIGN_OR_RETURN(const Artifact artifact, ReadArtifact(arguments, console));
  CW_ASSIGN_OR_RETURN(Target target, FindTarget(arguments, console));
  if (arguments.Has("dry-run")) {
    List(artifact, target, arguments, console);
    return kOk;
  }
  CW_ASSIGN_OR_RETURN(
      const ReadyDirectory ready,
      OpenCacheDirectory(target.path, target.machine, {.clock = console.clock, .sibling = false}));
  ImportCounts counts;
  {
    Progress progress(console, "importing", arguments.Has("quiet"));
    CW_ASSIGN_OR_RETURN(
        counts,
        WriteImport({.files = artifact.files,
                     .objects = artifact.inductor,
                     .tree = ready.dir,
                     .on_progress = [&progress](int64_t done,
                                                int64_t total) { progress.Show(done, total); }},
                    console.stop));
  }
  if (target.source.has_value()) {
    CW_RETURN_IF_ERROR(
        PublishUnion({.source = *target.source, .dir = ready.dir, .clock = console.clock},
                     console.stop)
            .status());
  }
  Report(artifact, target, counts, arguments, console);
  return kOk;
}

}  // namespace

Verb ImportVerb() {
  return {
      .name = "import",
      .operands = "FILE",
      .summary = "Import a portable cache of torch (mega-cache)",
      .text =
          "FILE has the bytes that torch.compiler.save_cache_artifacts() returned (torch 2.8 to\n"
          "2.15): graphs, autotune results, profiles and precompiled functions. Import writes "
          "each\n"
          "entry to the file in which torch itself would store it. Nothing in FILE is executed.\n\n"
          "FILE does not contain the compiled C++ kernels, so a process that only loads FILE\n"
          "compiles them again. Import therefore copies the kernels that the graphs in FILE need\n"
          "from the Inductor directory of the process that saved FILE: --with, by default\n"
          "TORCHINDUCTOR_CACHE_DIR. It reports the kernels that this directory lacks.\n\n"
          "The files are written into the cache directory of \"cachewarm run --name NAME\" or\n"
          "--dir. With --store they are also published for this machine, as by \"cachewarm "
          "save\":\n"
          "together with the files that the store already has.\n\n"
          "Save FILE with TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS=0, the value that cachewarm\n"
          "sets, because torch's keys include this variable. Import warns if FILE was saved with "
          "1.\n"
          "\n"
          "  cachewarm import artifact.bin --name llama\n"
          "  cachewarm import artifact.bin --with /tmp/torchinductor_root --name llama \\\n"
          "      --store oci://registry:5000/caches\n",
      .options =
          {{.name = "with",
            .value = "DIR",
            .help = "Inductor directory, with the compiled kernels, of the process that saved FILE "
                    "(default: TORCHINDUCTOR_CACHE_DIR)"},
           {.name = "dry-run", .help = "list the files that would be written"},
           {.name = "json", .help = "print the result as a JSON object"},
           {.name = "quiet", .help = "do not print progress"},
           kPythonOption},
      .groups = {SourceOptionList(), MachineOptionList(), StoreOptionList()},
      .run = Import};
}

}  // namespace cachewarm::cli
