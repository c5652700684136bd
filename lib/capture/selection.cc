// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "lib/base/status.h"
#include "lib/bundle/buffer.h"
#include "lib/capture/stable_file.h"
#include "lib/capture/whole_file.h"
#include "lib/fs/file.h"

namespace cachewarm::capture {
namespace {

constexpr int64_t kTimedEntryBytesMax = int64_t{64} << 20;
constexpr size_t kPieceBytes = 256U << 10U;
constexpr size_t kCubinHeadBytes = 64;
constexpr size_t kFilesPerJob = 64;

// The result of inspecting one file.
struct Finding {
  std::string truncated;  // why the file counts as truncated; empty if it is whole
  std::optional<std::string> architecture;
  caches::StoredCompileTime compile_time;
};

// Returns the sum of the compile times in the file. Reads the file in chunks into `piece`, which
// should fit into the processor's cache. Speed matters here, because in some trees this function
// reads most of the bytes.
absl::StatusOr<caches::StoredCompileTime> ReadCompileTime(const fs::Fd& file, int64_t bytes,
                                                          std::span<char> piece) {
  caches::StoredCompileTime found;
  size_t kept = 0;  // bytes of the previous piece that are repeated at the start of `piece`
  for (int64_t offset = 0; offset < bytes;) {
    const size_t wanted = std::min(piece.size() - kept, static_cast<size_t>(bytes - offset));
    CW_ASSIGN_OR_RETURN(const size_t got, fs::ReadAt(file, offset, piece.data() + kept, wanted));
    if (got == 0) {
      break;
    }
    const std::string_view text(piece.data(), kept + got);
    found -= caches::FindCompileTime(text.substr(0, kept));
    found += caches::FindCompileTime(text);
    kept = std::min(text.size(), caches::kCompileTimeBytesMax);
    std::copy(text.end() - static_cast<std::ptrdiff_t>(kept), text.end(), piece.begin());
    offset += static_cast<int64_t>(got);
  }
  return found;
}

absl::StatusOr<Finding> ReadFacts(const TreeFile& file, const fs::Fd& opened,
                                  bundle::Buffer& buffer) {
  CW_ASSIGN_OR_RETURN(const std::string head, ReadRange(opened, 0, kCubinHeadBytes));
  Finding finding{.architecture = caches::CubinArchitecture(head)};
  if (!finding.architecture.has_value()) {
    finding.architecture = caches::HsacoArchitecture(head);
  }
  if (file.path.ends_with(".ptx")) {
    CW_ASSIGN_OR_RETURN(const std::string text, ReadRange(opened, 0, caches::kPtxHeadBytes));
    finding.architecture = caches::PtxArchitecture(text);
  }
  if (caches::StoresCompileTime(file.placement) && file.stat.bytes <= kTimedEntryBytesMax) {
    CW_ASSIGN_OR_RETURN(finding.compile_time,
                        ReadCompileTime(opened, file.stat.bytes, buffer.Make(kPieceBytes)));
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

// Removes the truncated files, and all files that are in the same unit as a truncated file.
void RemoveTruncated(const std::vector<Finding>& findings, std::vector<TreeFile>& files) {
  std::set<std::string, std::less<>> paths;
  std::set<std::string, std::less<>> units;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!findings[i].truncated.empty()) {
      paths.insert(files[i].path);
      if (!files[i].placement.unit.empty()) {
        units.insert(files[i].placement.unit);
      }
    }
  }
  std::erase_if(files, [&](const TreeFile& file) {
    return paths.contains(file.path) ||
           (!file.placement.unit.empty() && units.contains(file.placement.unit));
  });
}

}  // namespace

absl::StatusOr<Selection> SelectFiles(std::vector<TreeFile> files, const SelectionInput& input) {
  CW_ASSIGN_OR_RETURN(const std::vector<Finding> findings, InspectFiles(files, input));
  Selection selection;
  std::set<std::string> architectures;
  for (const Finding& finding : findings) {
    if (!finding.truncated.empty()) {
      selection.truncated.push_back(finding.truncated);
    }
    if (finding.architecture.has_value()) {
      architectures.insert(*finding.architecture);
    }
    selection.compile_time += finding.compile_time;
  }
  RemoveTruncated(findings, files);
  selection.native = std::any_of(files.begin(), files.end(),
                                 [](const TreeFile& file) { return file.placement.native; });
  selection.gpu_architectures.assign(architectures.begin(), architectures.end());
  selection.files = std::move(files);
  return selection;
}

}  // namespace cachewarm::capture
