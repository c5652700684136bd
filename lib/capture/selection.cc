// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "lib/base/status.h"
#include "lib/bundle/buffer.h"
#include "lib/caches/entry_scan.h"
#include "lib/caches/gpu_images.h"
#include "lib/capture/stable_file.h"
#include "lib/capture/whole_file.h"
#include "lib/fs/file.h"

namespace cachewarm::capture {
namespace {

// A larger file is not searched. It counts as host code if files of its kind may hold some: at
// worst, nodes of another CPU class then compile instead of using the bundle.
constexpr int64_t kScannedBytesMax = int64_t{64} << 20;
constexpr size_t kPieceBytes = 256U << 10U;
constexpr size_t kFilesPerJob = 64;
constexpr size_t kVersionsMax = 4;  // versions of one engine in one bundle

// The result of inspecting one file.
struct Finding {
  std::string truncated;  // why the file counts as truncated; empty if it is whole
  std::set<std::string> architectures;
  bool host_code = false;
  std::vector<caches::EngineVersion> versions;
  caches::StoredCompileTime compile_time;
};

// The facts that a scan of one file looks for.
struct Scan {
  bool compile_time = false;
  bool host_code = false;
  bool versions = false;

  bool any() const { return compile_time || host_code || versions; }
};

void AddFacts(const TreeFile& file, const Scan& scan, std::string_view text, bool is_first,
              Finding& finding) {
  if (scan.compile_time) {
    finding.compile_time += caches::FindCompileTime(text);
  }
  if (scan.host_code && !finding.host_code) {
    finding.host_code = caches::ContainsHostCode(text);
  }
  if (scan.versions && finding.versions.empty()) {
    finding.versions = caches::VersionsInText(file.placement, file.path, text, is_first);
  }
}

// Reads the file in chunks into `piece`, which should fit into the processor's cache, and adds the
// facts found in them to `finding`. Speed matters here, because in some trees this function reads
// most of the bytes.
absl::Status ScanFile(const TreeFile& file, const Scan& scan, const fs::Fd& opened,
                      std::span<char> piece, Finding& finding) {
  size_t kept = 0;  // bytes of the previous piece that are repeated at the start of `piece`
  for (int64_t offset = 0; offset < file.stat.bytes;) {
    const size_t wanted =
        std::min(piece.size() - kept, static_cast<size_t>(file.stat.bytes - offset));
    CW_ASSIGN_OR_RETURN(const size_t got, fs::ReadAt(opened, offset, piece.data() + kept, wanted));
    if (got == 0) {
      break;
    }
    const std::string_view text(piece.data(), kept + got);
    if (scan.compile_time) {
      finding.compile_time -= caches::FindCompileTime(text.substr(0, kept));
    }
    AddFacts(file, scan, text, offset == 0, finding);
    kept = std::min(text.size(), caches::kScanOverlapBytes);
    std::copy(text.end() - static_cast<std::ptrdiff_t>(kept), text.end(), piece.begin());
    offset += static_cast<int64_t>(got);
  }
  return absl::OkStatus();
}

absl::StatusOr<Finding> ReadFacts(const TreeFile& file, const fs::Fd& opened,
                                  bundle::Buffer& buffer) {
  Finding finding{.versions = caches::VersionsInPath(file.placement, file.path)};
  CW_ASSIGN_OR_RETURN(finding.architectures,
                      caches::FindGpuCode(static_cast<uint64_t>(file.stat.bytes),
                                          [&opened](uint64_t offset, size_t size) {
                                            return ReadRange(opened, offset, size);
                                          }));
  if (file.path.ends_with(".ptx")) {
    CW_ASSIGN_OR_RETURN(const std::string text, ReadRange(opened, 0, caches::kPtxHeadBytes));
    if (const auto architecture = caches::PtxArchitecture(text); architecture.has_value()) {
      finding.architectures.insert(*architecture);
    }
  }
  const Scan scan{.compile_time = caches::StoresCompileTime(file.placement),
                  .host_code = caches::MayHoldHostCode(file.placement),
                  .versions = caches::MayHoldVersion(file.placement, file.path)};
  if (file.stat.bytes > kScannedBytesMax) {
    finding.host_code = scan.host_code;
  } else if (scan.any()) {
    CW_RETURN_IF_ERROR(ScanFile(file, scan, opened, buffer.Make(kPieceBytes), finding));
  }
  return finding;
}

absl::StatusOr<Finding> InspectFile(const TreeFile& file, const SelectionInput& input,
                                    bundle::Buffer& buffer) {
  if (input.on_opening) {
    input.on_opening(file.path);
  }
  absl::StatusOr<fs::Fd> opened = input.tree.OpenFile(file.path);
  if (absl::IsNotFound(opened.status())) {
    return absl::AbortedError(fmt::format("{} was removed while it was captured", file.path));
  }
  CW_RETURN_IF_ERROR(opened.status());
  CW_ASSIGN_OR_RETURN(const fs::FileStat now, fs::StatFile(*opened));
  if (!IsUnchanged(file.stat, now)) {
    return absl::AbortedError(fmt::format("{} changed while it was captured", file.path));
  }
  if (file.stat.bytes == 0 && !file.placement.autotune_set.empty()) {
    return Finding{.truncated = fmt::format("{}: empty autotune result", file.path)};
  }
  const absl::Status whole = CheckWholeFile(*opened, file.placement, file.path, file.stat.bytes);
  if (absl::IsDataLoss(whole)) {
    return Finding{.truncated = Message(whole)};
  }
  CW_RETURN_IF_ERROR(whole);
  return ReadFacts(file, *opened, buffer);
}

absl::StatusOr<std::vector<Finding>> InspectFiles(const std::vector<TreeFile>& files,
                                                  const SelectionInput& input) {
  std::vector<Finding> findings(files.size());
  CW_RETURN_IF_ERROR(bundle::ForEachBatch(
      input.threads, files.size(), kFilesPerJob, [&](size_t first, size_t last) -> absl::Status {
        bundle::Buffer buffer;
        for (size_t i = first; i < last; ++i) {
          CW_ASSIGN_OR_RETURN(findings[i], InspectFile(files[i], input, buffer));
        }
        return absl::OkStatus();
      }));
  return findings;
}

// Returns the indexes of the files that are neither truncated nor in the same unit or in the same
// set of autotune results as a truncated file.
std::vector<size_t> FindWholeFiles(const std::vector<Finding>& findings,
                                   const std::vector<TreeFile>& files) {
  std::set<std::string, std::less<>> paths;
  std::set<std::string, std::less<>> units;
  std::set<std::string, std::less<>> sets;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!findings[i].truncated.empty()) {
      paths.insert(files[i].path);
      units.insert(files[i].placement.unit);
      sets.insert(files[i].placement.autotune_set);
    }
  }
  units.erase("");
  sets.erase("");
  std::vector<size_t> whole;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!paths.contains(files[i].path) && !units.contains(files[i].placement.unit) &&
        !sets.contains(files[i].placement.autotune_set)) {
      whole.push_back(i);
    }
  }
  return whole;
}

// Joins the last kVersionsMax versions of each engine.
std::map<std::string, std::string> JoinVersions(
    const std::map<std::string, std::set<std::string>>& versions) {
  std::map<std::string, std::string> joined;
  for (const auto& [engine, found] : versions) {
    const size_t skipped = found.size() - std::min(found.size(), kVersionsMax);
    const auto first = std::next(found.begin(), static_cast<ptrdiff_t>(skipped));
    joined[engine] = fmt::format("{}", fmt::join(first, found.end(), ", "));
  }
  return joined;
}

}  // namespace

absl::StatusOr<Selection> SelectFiles(std::vector<TreeFile> files, const SelectionInput& input) {
  CW_ASSIGN_OR_RETURN(const std::vector<Finding> findings, InspectFiles(files, input));
  Selection selection;
  // Count the dropped files too, because the remaining files come from the same compiles.
  selection.native = std::any_of(files.begin(), files.end(),
                                 [](const TreeFile& file) { return file.placement.native; });
  for (const Finding& finding : findings) {
    if (!finding.truncated.empty()) {
      selection.truncated.push_back(finding.truncated);
    }
    selection.native = selection.native || finding.host_code;
  }
  std::set<std::string> architectures;
  std::map<std::string, std::set<std::string>> versions;
  for (const size_t i : FindWholeFiles(findings, files)) {
    const Finding& finding = findings[i];
    architectures.insert(finding.architectures.begin(), finding.architectures.end());
    for (const auto& [engine, version] : finding.versions) {
      versions[engine].insert(version);
    }
    selection.compile_time += finding.compile_time;
    selection.files.push_back(std::move(files[i]));
  }
  selection.engines = JoinVersions(versions);
  selection.gpu_architectures.assign(architectures.begin(), architectures.end());
  return selection;
}

}  // namespace cachewarm::capture
