// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/megacache/objects.h"
#include "cli/megacache/stored_entries.h"
#include "cli/run/options.h"
#include "cli/run/source.h"
#include "cli/signature.h"
#include "cli/tree.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/fs/error.h"
#include "lib/fs/file.h"
#include "lib/fs/tree.h"
#include "lib/megacache/artifact.h"
#include "lib/megacache/kernels.h"

namespace cachewarm::cli {
namespace {

constexpr mode_t kArtifactMode = 0644;

// A new directory below the temporary directory. The destructor removes it.
class ScratchDirectory {
 public:
  static absl::StatusOr<std::unique_ptr<ScratchDirectory>> Make() {
    std::string path =
        (std::filesystem::temp_directory_path() / "cachewarm-export-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) {
      return fs::ErrnoStatus(errno, fmt::format("{}: mkdtemp", path));
    }
    CW_ASSIGN_OR_RETURN(fs::Dir parent,
                        fs::Dir::Open(std::filesystem::path(path).parent_path().string()));
    return std::unique_ptr<ScratchDirectory>(new ScratchDirectory(std::move(parent), path));
  }
  ~ScratchDirectory() {
    fs::RemoveTree(parent_, std::filesystem::path(path_).filename().string()).IgnoreError();
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  ScratchDirectory(fs::Dir parent, std::string path)
      : parent_(std::move(parent)), path_(std::move(path)) {}

  const fs::Dir parent_;
  const std::string path_;
};

// The directory to export, and the scratch directory that holds it if it comes from a bundle.
struct Origin {
  std::string name;  // for the user
  std::string path;
  std::unique_ptr<ScratchDirectory> scratch;
};

absl::StatusOr<Origin> Unpacked(const OpenedReference& store, const bundle::Bundle& found,
                                const Arguments& arguments, Console& console) {
  Origin origin{.name = fmt::format("{}@{}", store.reference.ToString(), found.digest.ToString())};
  CW_ASSIGN_OR_RETURN(origin.scratch, ScratchDirectory::Make());
  origin.path = origin.scratch->path() + "/tree";
  Progress progress(console, "fetching", arguments.Has("quiet"));
  CW_RETURN_IF_ERROR(MakeTree(store.place(), found, {.directory = origin.path, .limits = {}},
                              progress, console.stop));
  return origin;
}

absl::StatusOr<Origin> FindOrigin(const Arguments& arguments, Console& console) {
  int given = 0;
  for (const std::string_view name : {"bundle", "store", "dir"}) {
    given += arguments.Value(name).empty() ? 0 : 1;
  }
  if (given > 1) {
    return UsageError("--bundle, --store, --dir: give only one of them");
  }
  if (const std::string bundle = arguments.Value("bundle"); !bundle.empty()) {
    CW_ASSIGN_OR_RETURN(const OpenedBundle opened, OpenBundle(bundle, arguments, console));
    return Unpacked(opened.source, opened.bundle, arguments, console);
  }
  const std::string inherited = console.Environment("TORCHINDUCTOR_CACHE_DIR");
  if (given == 0 && arguments.Value("name").empty() && !inherited.empty()) {
    return Origin{.name = inherited, .path = inherited};
  }
  EngineVersions engines = EnginesOf(arguments, console);
  if (!arguments.Value("store").empty()) {
    CW_ASSIGN_OR_RETURN(const BundleSource source,
                        OpenSource(arguments, console, std::move(engines)));
    CW_ASSIGN_OR_RETURN(const bundle::Bundle found, ReadUsableBundle(source, console.stop));
    return Unpacked(source.store, found, arguments, console);
  }
  CW_ASSIGN_OR_RETURN(const Machine machine, FindMachine(arguments, std::move(engines)));
  CW_ASSIGN_OR_RETURN(const std::string path, CacheDirectoryOf(arguments, machine, console));
  return Origin{.name = path, .path = path};
}

absl::Status WriteArtifact(const std::string& file, const std::string& bytes) {
  const std::filesystem::path path = std::filesystem::absolute(file).lexically_normal();
  CW_ASSIGN_OR_RETURN(const fs::Dir parent, fs::Dir::Open(path.parent_path().string()));
  return Annotate(fs::WriteFileAtomic(parent, path.filename().string(), bytes, kArtifactMode),
                  "--output");
}

void Report(const StoredEntries& stored, const Origin& origin, size_t bytes,
            const Arguments& arguments, Console& console) {
  const size_t kernels = megacache::KernelSources(stored.entries).size();
  std::map<std::string, int64_t> types;
  for (const megacache::Entry& entry : stored.entries) {
    ++types[entry.type];
  }
  if (arguments.Has("json")) {
    PrintJson(console, {{"source", origin.name},
                        {"output", arguments.Value("output")},
                        {"entries", types},
                        {"bytes", bytes},
                        {"kernels", kernels},
                        {"damaged", stored.damaged}});
    return;
  }
  std::string text;
  for (const auto& [type, count] : types) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, type);
  }
  console.out << arguments.Value("output") << '\n';
  console.err << fmt::format("exported {} of {}, {}\n", text, origin.name,
                             FormatBytes(static_cast<int64_t>(bytes)));
  for (const std::string& damaged : stored.damaged) {
    console.err << fmt::format("skipped damaged file: {}\n", damaged);
  }
  if (kernels > 0) {
    console.err << fmt::format(
        "an artifact cannot hold compiled kernels: a process that only loads it compiles {} "
        "kernels again\n",
        kernels);
  }
}

absl::StatusOr<int> Export(const Arguments& arguments, Console& console) {
  if (arguments.Value("output").empty()) {
    return UsageError("--output: required; the file for the artifact");
  }
  CW_ASSIGN_OR_RETURN(const Origin origin, FindOrigin(arguments, console));
  CW_ASSIGN_OR_RETURN(const fs::Dir inductor, OpenInductorDirectory(origin.path));
  CW_ASSIGN_OR_RETURN(const StoredEntries stored, ReadStoredEntries(inductor, console.stop));
  if (stored.entries.empty()) {
    return absl::NotFoundError(fmt::format(
        "{}: no entries of torch.compile found; the directory must contain fxgraph/ and "
        "aotautograd/, directly or in inductor/",
        origin.name));
  }
  const std::string bytes = megacache::Write(stored.entries);
  CW_RETURN_IF_ERROR(WriteArtifact(arguments.Value("output"), bytes));
  Report(stored, origin, bytes.size(), arguments, console);
  return kOk;
}

}  // namespace

Verb ExportVerb() {
  return {
      .name = "export",
      .operands = "",
      .summary = "Export a cache as a portable cache of torch (mega-cache)",
      .text =
          "Writes a file whose bytes torch.compiler.load_cache_artifacts() takes (torch 2.8 to\n"
          "2.15): the graphs, autotune results, profiles and precompiled functions of one cache.\n"
          "The format cannot hold compiled C++ kernels, so a process that only loads\n"
          "the artifact compiles them again.\n\n"
          "The cache is a BUNDLE, the bundle of this machine in --store, or a directory: --dir,\n"
          "TORCHINDUCTOR_CACHE_DIR, or the directory of \"cachewarm run --name NAME\".\n\n"
          "  cachewarm export --name llama -o artifact.bin\n"
          "  cachewarm export --bundle layout:///srv/bundles/llama:v2 -o artifact.bin\n",
      .options = {{.name = "output",
                   .value = "FILE",
                   .help = "file to write; an existing one is replaced",
                   .letter = 'o'},
                  {.name = "bundle", .value = "BUNDLE", .help = "export this bundle"},
                  {.name = "store",
                   .value = "DIR|URL",
                   .help = "export the bundle of this machine from this store: a directory, "
                           "oci://host/path or layout:///dir"},
                  {.name = "dir",
                   .value = "DIR",
                   .help = "export this cache directory or Inductor directory (default: "
                           "TORCHINDUCTOR_CACHE_DIR, else that of \"cachewarm run --name NAME\")"},
                  {.name = "name",
                   .value = "NAME",
                   .help = "name of the bundle in the store, or of the directory (default: run)"},
                  kPublicKeyOption,
                  {.name = "json", .help = "print the result as a JSON object"},
                  {.name = "quiet", .help = "do not print progress"},
                  kPythonOption},
      .groups = {MachineOptionList(), StoreOptionList()},
      .run = Export};
}

}  // namespace cachewarm::cli
