// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/run/directory.h"
#include "cli/run/environment.h"
#include "cli/run/fetch.h"
#include "cli/run/options.h"
#include "cli/run/publish.h"
#include "cli/run/stored_snapshot.h"
#include "cli/run/time_limit.h"
#include "cli/run/torch_directory.h"
#include "cli/run/transfer_limits.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/store/open.h"
#include "lib/codec/json_value.h"
#include "lib/fs/file.h"
#include "lib/fs/tree.h"

namespace cachewarm::cli {
namespace {

constexpr int64_t kMaxWaitSeconds = 600;
// File with the digest of a bundle that "load" could not unpack; "save" replaces that bundle.
constexpr char kDamaged[] = ".cachewarm/damaged";
constexpr int64_t kDamagedBytesMax = 256;

// The result of a transfer, with the status names of b10-transfer.
struct Result {
  std::string_view status;  // SUCCESS, SKIPPED, DOES_NOT_EXIST or ERROR
  int code = kOk;
  std::string reason;
  int64_t files = 0;
  int64_t bytes = 0;
};

Result Success(int64_t files, int64_t bytes, std::string reason) {
  return {.status = "SUCCESS", .reason = std::move(reason), .files = files, .bytes = bytes};
}

Result Skipped(std::string reason) {
  return {.status = "SKIPPED", .code = kSkipped, .reason = std::move(reason)};
}

Result Failure(const absl::Status& status) {
  const bool missing = absl::IsNotFound(status);
  return {.status = missing ? "DOES_NOT_EXIST" : "ERROR",
          .code = ExitCodeOf(status),
          .reason = Message(status)};
}

// The cache directory of a transfer, and the tree that bundles are made from. Both are the same
// directory, unless the cache directory is a TORCHINDUCTOR_CACHE_DIR outside of any tree
// (torch_directory.h).
struct Transfer {
  BundleSource source;
  TransferLimits limits;
  std::string directory;         // for the user
  std::optional<fs::Dir> torch;  // TORCHINDUCTOR_CACHE_DIR, if it is outside of the tree
  fs::Dir tree;
  std::string note;
};

// Returns TORCHINDUCTOR_CACHE_DIR; empty if it is not set or --dir takes precedence.
std::string TorchDirectory(const Arguments& arguments, const Console& console) {
  return arguments.Value("dir").empty() ? console.Environment("TORCHINDUCTOR_CACHE_DIR") : "";
}

absl::StatusOr<std::string> RealPath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  if (error) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", path, error.message()));
  }
  return (real / "").parent_path().string();
}

// Opens the directories of a transfer. `adopt`: files in a directory without a marker count as
// compiled on this machine (DirectoryOptions).
absl::StatusOr<Transfer> Open(const Arguments& arguments, const Console& console, bool adopt) {
  CW_ASSIGN_OR_RETURN(BundleSource source,
                      OpenSource(arguments, console, EnginesOf(arguments, console)));
  CW_ASSIGN_OR_RETURN(TransferLimits limits, ReadTransferLimits(arguments, console.environment));
  std::string path = TorchDirectory(arguments, console);
  const bool is_torch = !path.empty();
  if (!is_torch) {
    CW_ASSIGN_OR_RETURN(path, CacheDirectoryOf(arguments, source.machine, console));
  }
  CW_ASSIGN_OR_RETURN(path, RealPath(path));
  CW_RETURN_IF_ERROR(CheckAllowed(path, limits));
  const bool outside = is_torch && !path.ends_with(fmt::format("/{}", kTorchKind));
  const std::string tree = outside    ? fmt::format("{}/{}", path, kTorchTree)
                           : is_torch ? std::filesystem::path(path).parent_path().string()
                                      : path;
  CW_ASSIGN_OR_RETURN(
      ReadyDirectory opened,
      OpenCacheDirectory(tree, source.machine,
                         {.clock = console.clock, .adopt = adopt, .sibling = !is_torch}));
  std::optional<fs::Dir> torch;
  if (outside) {
    CW_ASSIGN_OR_RETURN(torch, fs::Dir::Open(path));
  }
  return Transfer{.source = std::move(source),
                  .limits = std::move(limits),
                  .directory = is_torch ? path : opened.path,
                  .torch = std::move(torch),
                  .tree = std::move(opened.dir),
                  .note = std::move(opened.note)};
}

// Checks the free space of a store that is a directory; registries report a full disk themselves.
absl::Status CheckStoreSpace(const Transfer& transfer) {
  CW_ASSIGN_OR_RETURN(const bundle::StoreUrl url,
                      bundle::ParseStoreUrl(transfer.source.store.reference.store_url));
  if (url.kind != bundle::StoreUrl::Kind::kLayout || transfer.limits.store_free_bytes_min == 0) {
    return absl::OkStatus();
  }
  CW_ASSIGN_OR_RETURN(const fs::Dir dir, fs::Dir::OpenOrMake(url.directory, 0755));
  CW_ASSIGN_OR_RETURN(const fs::Space space, fs::MeasureSpace(dir));
  if (space.free_bytes >= transfer.limits.store_free_bytes_min) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      fmt::format("{}: {} bytes are free, but {} must be (--min-free-bytes, MIN_B10FS_SPACE_MB, "
                  "MAX_CONCURRENT_SAVES); delete files on this disk or lower the limit",
                  url.directory, space.free_bytes, transfer.limits.store_free_bytes_min));
}

// Returns the present state of the files that "save" would publish. TORCHINDUCTOR_CACHE_DIR decides
// where it is used: on a file system without hard links the tree has copies with other times.
TreeSnapshot SnapshotOf(const Transfer& transfer) {
  return transfer.torch.has_value()
             ? TakeSnapshot(*transfer.torch, caches::CacheTable::AllPresets(), kTorchKind)
             : TakeSnapshot(transfer.tree);
}

Result LoadInto(const Transfer& transfer, const Clock& clock, const std::stop_token& stop) {
  // A TORCHINDUCTOR_CACHE_DIR that has files but no tree of cachewarm was filled without cachewarm,
  // so it is unknown on which machine the files were compiled.
  if (transfer.torch.has_value() && TakeSnapshot(transfer.tree).empty()) {
    bool filled = false;
    const absl::Status walked =
        fs::Walk(*transfer.torch, "", {}, [&filled](const fs::WalkEntry& entry) {
          if (entry.path == kOwnFiles) {
            return fs::WalkNext::kSkipDirectory;
          }
          filled = entry.stat.type == fs::FileType::kFile;
          return filled ? fs::WalkNext::kStop : fs::WalkNext::kContinue;
        });
    if (walked.ok() && filled) {
      return Skipped(
          "the directory already has files, and no record of the machine that compiled them");
    }
  }
  const FetchReport fetched =
      FetchMissing({.source = transfer.source,
                    .dir = transfer.tree,
                    .clock = clock,
                    .limits = {.packed_bytes_max = transfer.limits.packed_bytes_max,
                               .free_bytes_min = transfer.limits.local_free_bytes_min,
                               .lock_wait = transfer.limits.lock_wait}},
                   stop);
  if (absl::IsDataLoss(fetched.status) && !fetched.bundle.empty()) {
    fs::WriteFileAtomic(transfer.tree, kDamaged, fetched.bundle.ToString(), 0644).IgnoreError();
  }
  if (!fetched.status.ok()) {
    return Failure(fetched.status);
  }
  if (transfer.torch.has_value()) {
    if (const absl::Status linked = LinkFromTree(transfer.tree, *transfer.torch); !linked.ok()) {
      return Failure(linked);
    }
  }
  // A load succeeds also without a snapshot; the next "save" then compares paths alone.
  StoreSnapshot(transfer.tree, KeepOlder(ReadStoredSnapshot(transfer.tree), SnapshotOf(transfer)))
      .IgnoreError();
  return fetched.files == 0
             ? Skipped(fetched.rivals == 0
                           ? "the directory already has every file of the bundle"
                           : "the directory has autotune results of its own and every other file "
                             "of the bundle")
             : Success(fetched.files, fetched.bytes, fmt::format("loaded {} files", fetched.files));
}

Digest DamagedBundle(const Transfer& transfer) {
  const auto text = fs::ReadFile(transfer.tree, kDamaged, kDamagedBytesMax);
  return text.ok() ? Digest::Parse(*text).value_or(Digest()) : Digest();
}

Result SaveFrom(const Transfer& transfer, const Clock& clock, const std::stop_token& stop) {
  if (transfer.torch.has_value()) {
    if (const absl::Status linked = LinkIntoTree(*transfer.torch, transfer.tree); !linked.ok()) {
      return Failure(linked);
    }
  }
  if (const absl::Status space = CheckStoreSpace(transfer); !space.ok()) {
    return Failure(space);
  }
  // Taken before the files are read: one that changes meanwhile counts as written again next time.
  const TreeSnapshot now = SnapshotOf(transfer);
  const auto report =
      PublishUnion({.source = transfer.source,
                    .dir = transfer.tree,
                    .clock = clock,
                    .replaced = ReplacedFiles(ReadStoredSnapshot(transfer.tree), now),
                    .damaged = DamagedBundle(transfer),
                    .packed_bytes_max = transfer.limits.packed_bytes_max},
                   stop);
  if (!report.ok()) {
    return Failure(report.status());
  }
  transfer.tree.Remove(kDamaged).IgnoreError();
  StoreSnapshot(transfer.tree, now).IgnoreError();
  switch (report->outcome) {
    case PublishOutcome::kPublished:
      return Success(report->files, report->bytes, fmt::format("saved {} files", report->files));
    case PublishOutcome::kCovered:
      return Skipped("the store already has every file of the directory");
    case PublishOutcome::kEmpty:
      break;
  }
  return Skipped("the directory has no cache files");
}

void Report(const Result& result, const std::string& directory, const Arguments& arguments,
            Console& console) {
  if (!arguments.Has("json")) {
    console.err << fmt::format("{}: {}\n", result.status, result.reason);
    return;
  }
  const bool usable = !directory.empty() && TorchDirectory(arguments, console).empty();
  PrintJson(console, {{"status", result.status},
                      {"reason", result.reason},
                      {"directory", directory},
                      {"files", result.files},
                      {"bytes", result.bytes},
                      {"environment", usable ? PresetVariables(directory)
                                             : std::map<std::string, std::string>()}});
}

using Work = Result (*)(const Transfer&, const Clock&, const std::stop_token&);

absl::StatusOr<int> RunTransfer(const Arguments& arguments, Console& console, Work work,
                                bool adopt) {
  const Duration limit = std::chrono::seconds(arguments.Number("max-wait", kMaxWaitSeconds));
  auto opened = Open(arguments, console, adopt);
  if (!opened.ok()) {
    Report(Failure(opened.status()), "", arguments, console);
    return ExitCodeOf(opened.status());
  }
  const auto transfer = std::make_shared<const Transfer>(*std::move(opened));
  if (!transfer->note.empty()) {
    console.err << fmt::format("{}\n", transfer->note);
  }
  auto result = RunWithin<Result>(console.clock, limit, console.stop,
                                  [transfer, work, &clock = console.clock](std::stop_token stop) {
                                    return work(*transfer, clock, stop);
                                  });
  if (!result.has_value() || (result->code == kInterrupted && !console.stop.stop_requested())) {
    result = Failure(absl::DeadlineExceededError(
        fmt::format("the store {} did not answer within {} (--max-wait)",
                    transfer->source.store.reference.ToString(), FormatDuration(limit))));
  }
  Report(*result, transfer->directory, arguments, console);
  return result->code;
}

absl::StatusOr<int> Load(const Arguments& arguments, Console& console) {
  return RunTransfer(arguments, console, LoadInto, false);
}

absl::StatusOr<int> Save(const Arguments& arguments, Console& console) {
  return RunTransfer(arguments, console, SaveFrom, true);
}

constexpr std::string_view kResults =
    "Prints one of SUCCESS, SKIPPED, DOES_NOT_EXIST and ERROR with a reason; the exit codes are "
    "0,\n"
    "5, 4 and 1 (2 for a wrong command line, 3 if the bundle is damaged or not signed by "
    "--key).\n\n"
    "Without --dir the directory is TORCHINDUCTOR_CACHE_DIR if that is set. The environment\n"
    "variables of b10-transfer are honoured; see docs/migration/b10-transfer.md.\n\n";

constexpr std::array<Option, 3> kTransferOptions = {{
    kPythonOption,
    {.name = "max-wait",
     .value = "SECONDS",
     .help = "end with ERROR after this many seconds (default: 600)",
     .range = kWaitSeconds},
    {.name = "json", .help = "print the result as a JSON object"},
}};

Verb TransferVerb(Verb verb) {
  verb.groups = {SourceOptionList(), kTransferOptions, TransferLimitOptionList(),
                 MachineOptionList(), StoreOptionList()};
  return verb;
}

}  // namespace

Verb LoadVerb() {
  static const std::string text =
      "Adds the files of this machine's bundle that the cache directory lacks. For scripts that\n"
      "start a command themselves; \"cachewarm run\" loads, runs a command and saves.\n" +
      std::string(kResults) + "  cachewarm load --store /srv/bundles --name llama --dir /cache\n";
  return TransferVerb({.name = "load",
                       .summary = "Load the compile caches of this machine from the store",
                       .text = text,
                       .run = Load});
}

Verb SaveVerb() {
  static const std::string text =
      "Publishes the files of the cache directory together with those that the store already has.\n"
      "A file that was written again since the last load or save replaces that of the store.\n"
      "If the directory has no file .cachewarm/machine.json, which names the machine that\n"
      "compiled its files, they count as compiled on this machine.\n" +
      std::string(kResults) + "  cachewarm save --store /srv/bundles --name llama --dir /cache\n";
  return TransferVerb({.name = "save",
                       .summary = "Save the compile caches of this machine to the store",
                       .text = text,
                       .run = Save});
}

}  // namespace cachewarm::cli
