// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/fetching/fetch_generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "agent/steps/fetching/fault_attributing_store.h"
#include "agent/steps/fetching/reuse.h"
#include "agent/steps/fetching/tree_directories.h"
#include "agent/tree/durable.h"
#include "agent/tree/journal.h"
#include "agent/tree/links.h"
#include "agent/tree/pod_access.h"
#include "agent/tree/root_layout.h"
#include "lib/api/reasons.h"
#include "lib/base/status.h"
#include "lib/bundle/fit.h"
#include "lib/bundle/signature/signature.h"
#include "lib/bundle/unpack/tree_files.h"
#include "lib/capture/restore_rules.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {
namespace {

constexpr mode_t kStagingMode = 0700;
// Assumed block size of the file system. A file occupies whole blocks.
constexpr int64_t kBlockBytes = 4096;

// Returns the disk usage of the files, each rounded up to a block, and of their directories.
DiskAmount UsageOf(const bundle::Config& config) {
  DiskAmount usage{.inodes = static_cast<int64_t>(config.entries.size())};
  std::set<std::string_view> directories;
  for (const bundle::Entry& entry : config.entries) {
    usage.bytes += (entry.bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    const std::string_view path = entry.path;
    for (size_t slash = path.rfind('/'); slash != std::string_view::npos && slash > 0;
         slash = path.rfind('/', slash - 1)) {
      if (!directories.insert(path.substr(0, slash)).second) {
        break;
      }
    }
  }
  const auto count = static_cast<int64_t>(directories.size());
  return usage + DiskAmount{.bytes = count * kBlockBytes, .inodes = count};
}

// Returns the source of an error of the extraction: the bundle or the local disk. The store is a
// third source, which Fault() reports instead if a store call failed.
FaultSource SourceOfExtraction(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsInvalidArgument(status) ? FaultSource::kBundle
                                                                     : FaultSource::kDisk;
}

EntryRecord RecordOf(const bundle::Entry& entry, const fs::FileStat& stat) {
  return {.path = entry.path,
          .kind = entry.kind,
          .digest = entry.digest,
          .bytes = stat.bytes,
          .inode = stat.inode,
          .mtime_ns = stat.mtime_ns,
          .ctime_ns = stat.ctime_ns};
}

// Executes one fetch. Remembers the bundle in progress, so that Fault() can report it.
class Fetcher {
 public:
  Fetcher(const FetchJob& job, std::stop_token stop)
      : job_(job), store_(job.store), stop_(std::move(stop)) {}

  absl::StatusOr<Fetched> Run() {
    const MonoTime begin = job_.clock.Monotonic();
    const std::string staging = StagingPath(job_.step.generation);
    CW_RETURN_IF_ERROR(fs::RemoveTree(job_.root, staging));
    CW_RETURN_IF_ERROR(CheckSignatures());
    CW_RETURN_IF_ERROR(ReadBundles());
    CW_RETURN_IF_ERROR(job_.root.MakeDir(staging, kStagingMode));
    CW_RETURN_IF_ERROR(ExtractAll(staging));
    current_ = Digest();
    CW_RETURN_IF_ERROR(
        OpenDirectoriesToPods(job_.root, staging, job_.step.mount, job_.table, Configs()));
    // MakeRecords() frees the bundles.
    std::vector<BundleEngineFactors> engine_factors = EngineFactorsOfBundles();
    const std::vector<EntryRecord> entries = MakeRecords();
    fetched_.seconds = std::chrono::duration<double>(job_.clock.Monotonic() - begin).count();
    fetched_.files = static_cast<int64_t>(entries.size());
    for (const EntryRecord& entry : entries) {
      fetched_.bytes += entry.bytes;
    }
    CW_RETURN_IF_ERROR(WriteGenerationRecord(job_.root,
                                             {.id = job_.step.generation,
                                              .mount = job_.step.mount,
                                              .digests = DigestsOf(job_.step.bundles),
                                              .files = fetched_.files,
                                              .bytes = fetched_.bytes,
                                              .fetch_seconds = fetched_.seconds,
                                              .usage = usage_,
                                              .engine_factors = std::move(engine_factors)},
                                             entries, fs::Durable::kOnceAllSynced));
    // Nothing is synced here: the tree can be activated as soon as it is verified, and the page
    // cache has it until the machine stops. A mark of an earlier tree of this name would be wrong
    // then.
    CW_ASSIGN_OR_RETURN(const bool is_marked,
                        job_.root.Exists(DurableMarkPath(job_.step.generation)));
    if (is_marked) {
      CW_RETURN_IF_ERROR(RemoveDurableMark(job_.root, job_.step.generation));
    }
    CW_RETURN_IF_ERROR(CommitGeneration(job_.root, job_.step.generation));
    return fetched_;
  }

  FetchFault Fault(absl::Status status) const {
    return {.status = std::move(status),
            .digest = current_,
            .source = store_.has_failed() ? FaultSource::kStore : source_,
            .lacking = lacking_};
  }

 private:
  // Checks signatures before any other read, so that an unsigned bundle is never parsed.
  absl::Status CheckSignatures() {
    if (job_.public_key_file.empty()) {
      return absl::OkStatus();
    }
    source_ = FaultSource::kSignature;
    CW_ASSIGN_OR_RETURN(const std::vector<bundle::PublicKey> keys,
                        bundle::ReadPublicKeys(job_.public_key_file));
    for (const api::WantedBundle& wanted : job_.step.bundles) {
      current_ = wanted.digest;
      CW_ASSIGN_OR_RETURN(const bundle::SignatureCheck check,
                          bundle::CheckSignature(Place(), wanted.digest, keys, stop_));
      // CheckSignature() skips signatures that the store cannot deliver, so such a failure of the
      // store must not be blamed for a later error.
      store_.ClearFault();
      if (!check.good) {
        return absl::InvalidArgumentError(check.problem);
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadBundles() {
    // OpenDirectoriesToPods() makes these folders in every tree.
    const auto folders = static_cast<int64_t>(job_.table.Directories().size());
    usage_ = {.bytes = folders * kBlockBytes, .inodes = folders};
    for (const api::WantedBundle& wanted : job_.step.bundles) {
      current_ = wanted.digest;
      source_ = FaultSource::kBundle;
      absl::StatusOr<bundle::Bundle> bundle = bundle::ReadBundle(Place(), wanted.digest, stop_);
      CW_RETURN_IF_ERROR(bundle.status());
      CW_RETURN_IF_ERROR(bundle::CheckFit(*bundle, job_.gpu_type, job_.cpu_class));
      source_ = FaultSource::kDisk;
      usage_ = usage_ + UsageOf(bundle->config);
      CW_RETURN_IF_ERROR(Reserve());
      bundles_.push_back(*std::move(bundle));
    }
    return absl::OkStatus();
  }

  absl::Status Reserve() {
    const auto check = [this](const DiskAmount& others) { return CheckCapacity(others); };
    return job_.reserve ? job_.reserve(usage_, check) : check({});
  }

  absl::Status CheckCapacity(const DiskAmount& others) {
    CW_ASSIGN_OR_RETURN(const fs::Space space, fs::MeasureSpace(job_.root));
    DiskLimits disk = job_.disk;
    disk.used_bytes += others.bytes;
    disk.free_bytes = space.free_bytes - others.bytes;
    if (space.total_inodes > 0) {
      disk.free_inodes = space.free_inodes - others.inodes;
    }
    const std::optional<SpaceRefusal> refusal = CheckSpace(disk, usage_);
    if (!refusal.has_value()) {
      return absl::OkStatus();
    }
    lacking_ = Lacking(disk, usage_);
    return refusal->reason == api::reason::kOverLimit
               ? absl::OutOfRangeError(refusal->message)
               : absl::ResourceExhaustedError(refusal->message);
  }

  absl::Status ExtractAll(const std::string& staging) {
    CW_ASSIGN_OR_RETURN(const fs::Dir tree, job_.root.OpenDir(staging));
    for (const bundle::Bundle& bundle : bundles_) {
      current_ = bundle.digest;
      CW_RETURN_IF_ERROR(ExtractOne(bundle, tree));
    }
    return absl::OkStatus();
  }

  // Called with each file of a bundle that was made, by several threads concurrently.
  using OnMade = std::function<void(const bundle::Entry& entry, const fs::FileStat& stat)>;

  // Returns the options for unpacking one bundle. No directories are made, because they exist
  // already. Nothing is synced, because MakeDurable() syncs the tree after its activation.
  bundle::UnpackOptions Options(const OnMade& on_made) {
    return {
        .limits = job_.limits,
        .threads = job_.threads,
        .mode_of =
            [this](const bundle::Entry& entry) {
              return mode_t{job_.table.Classify(entry.path).mode()};
            },
        .on_file = [this, on_made](const bundle::Entry& entry, const fs::Fd& file) -> absl::Status {
          CW_ASSIGN_OR_RETURN(const fs::FileStat stat, SetPodOwner(file, job_.step.mount));
          on_made(entry, stat);
          return absl::OkStatus();
        },
        .check_contents = false,
        .make_directories = false,
        .sync = false,
        .keep_existing = true};
  }

  absl::Status ExtractOne(const bundle::Bundle& bundle, const fs::Dir& tree) {
    const std::vector<bundle::Entry>& entries = bundle.config.entries;
    std::vector<fs::FileStat>& made = made_.emplace_back(entries.size());
    const OnMade on_made = [&](const bundle::Entry& entry, const fs::FileStat& stat) {
      made[static_cast<size_t>(&entry - entries.data())] = stat;
    };
    bundle::UnpackOptions options = Options(on_made);
    source_ = FaultSource::kBundle;
    CW_RETURN_IF_ERROR(bundle::CheckBundle(bundle.manifest, bundle.config, job_.limits));
    const auto make_directories = [&] {
      absl::Status status = bundle::MakeDirectories(bundle.config, tree, options);
      source_ = status.ok() ? FaultSource::kDisk : SourceOfExtraction(status);
      return status;
    };
    const std::vector<bool> excluded = capture::FindUnwanted(entries, job_.table, autotune_);
    CW_ASSIGN_OR_RETURN(Reused reused, ReuseContents({.root = job_.root,
                                                      .staging = tree,
                                                      .table = job_.table,
                                                      .mount = job_.step.mount,
                                                      .sources = job_.step.sources,
                                                      .excluded = excluded,
                                                      .threads = job_.threads,
                                                      .make_directories = make_directories,
                                                      .on_opening = job_.on_opening_source},
                                                     bundle.config, on_made, stop_));
    fetched_.reused_bytes += reused.bytes;
    options.present = std::move(reused.present);
    options.wanted = capture::WantedAmong(entries, excluded);
    int64_t moved_bytes = 0;
    const auto on_progress = [&](int64_t done, int64_t) {
      moved_bytes = done;
      if (job_.on_progress) {
        job_.on_progress(bundle.digest, done);
      }
    };
    absl::Status extracted = bundle::Extract(Place(),
                                             {.bundle = bundle,
                                              .staging = tree,
                                              .options = std::move(options),
                                              .on_progress = on_progress},
                                             stop_);
    if (!extracted.ok()) {
      source_ = SourceOfExtraction(extracted);
      return extracted;
    }
    fetched_.packed_bytes += bundle.manifest.config.bytes + moved_bytes;
    autotune_.merge(capture::AutotuneResultsOf(entries, job_.table, excluded));
    return absl::OkStatus();
  }

  std::vector<BundleEngineFactors> EngineFactorsOfBundles() const {
    std::vector<BundleEngineFactors> out;
    for (const bundle::Bundle& bundle : bundles_) {
      if (const auto& factors = bundle.config.facts.engine_factors; !factors.empty()) {
        out.push_back({.digest = bundle.digest, .factors = factors});
      }
    }
    return out;
  }

  std::vector<const bundle::Config*> Configs() const {
    std::vector<const bundle::Config*> configs;
    for (const bundle::Bundle& bundle : bundles_) {
      configs.push_back(&bundle.config);
    }
    return configs;
  }

  // Returns the records of all files, sorted by path. Frees made_ and bundles_, because writing the
  // records needs as much memory again.
  std::vector<EntryRecord> MakeRecords() {
    std::vector<EntryRecord> records;
    for (size_t i = 0; i < bundles_.size(); ++i) {
      const std::vector<bundle::Entry>& entries = bundles_[i].config.entries;
      for (size_t number = 0; number < entries.size(); ++number) {
        if (made_[i][number].inode != 0) {
          records.push_back(RecordOf(entries[number], made_[i][number]));
        }
      }
    }
    std::sort(records.begin(), records.end(),
              [](const EntryRecord& a, const EntryRecord& b) { return a.path < b.path; });
    made_.clear();
    bundles_.clear();
    return records;
  }

  bundle::RepositoryRef Place() {
    const Mount& mount = job_.step.mount;
    return {.store = store_, .repository = fmt::format("{}/{}", mount.ns, mount.name)};
  }

  const FetchJob& job_;
  FaultAttributingStore store_;
  std::stop_token stop_;
  std::vector<bundle::Bundle> bundles_;
  // For each bundle, by number of the entry: the file that this fetch made; inode 0: it made none.
  std::vector<std::vector<fs::FileStat>> made_;
  capture::AutotuneResults autotune_;  // of the bundles that are unpacked already
  Fetched fetched_;
  DiskAmount usage_;    // of the bundles that were read
  DiskAmount lacking_;  // what CheckCapacity() found to be missing
  Digest current_;
  // Blamed if the current step fails. If a store call failed, Fault() blames the store instead.
  FaultSource source_ = FaultSource::kDisk;
};

}  // namespace

std::variant<Fetched, FetchFault> FetchGeneration(const FetchJob& job, std::stop_token stop) {
  Fetcher fetcher(job, std::move(stop));
  absl::StatusOr<Fetched> fetched = fetcher.Run();
  if (fetched.ok()) {
    return *std::move(fetched);
  }
  fs::RemoveTree(job.root, StagingPath(job.step.generation)).IgnoreError();
  return fetcher.Fault(fetched.status());
}

}  // namespace cachewarm::agent
