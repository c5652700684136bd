// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lib/base/status.h"
#include "lib/capture/stable_file.h"
#include "lib/capture/whole_file.h"
#include "lib/fs/file.h"

namespace cachewarm::capture {
namespace {

constexpr int64_t kTimedEntryBytesMax = int64_t{64} << 20;
constexpr size_t kCubinHeadBytes = 64;

// Looks into the files one by one and gathers what the bundle's facts need.
class Inspector {
 public:
  explicit Inspector(const SelectionInput& input) : input_(input) {}

  absl::Status Inspect(const TreeFile& file) {
    if (input_.on_opening) {
      input_.on_opening(file.path);
    }
    absl::StatusOr<fs::Fd> opened = input_.tree.OpenFile(file.path);
    if (absl::IsNotFound(opened.status())) {
      return absl::AbortedError(fmt::format("{} went away while it was captured", file.path));
    }
    CW_RETURN_IF_ERROR(opened.status());
    CW_ASSIGN_OR_RETURN(const fs::FileStat now, fs::StatFile(*opened));
    if (!IsUnchanged(file.stat, now)) {
      return absl::AbortedError(fmt::format("{} changed while it was captured", file.path));
    }
    const absl::Status whole = CheckWholeFile(*opened, file.placement, file.path, file.stat.bytes);
    if (absl::IsDataLoss(whole)) {
      selection_.torn.push_back(Message(whole));
      torn_paths_.insert(file.path);
      if (!file.placement.unit.empty()) {
        torn_units_.insert(file.placement.unit);
      }
      return absl::OkStatus();
    }
    CW_RETURN_IF_ERROR(whole);
    return NoteFacts(file, *opened);
  }

  Selection Finish(std::vector<TreeFile> files) {
    std::erase_if(files, [&](const TreeFile& file) {
      return torn_paths_.contains(file.path) ||
             (!file.placement.unit.empty() && torn_units_.contains(file.placement.unit));
    });
    selection_.native = std::any_of(files.begin(), files.end(),
                                    [](const TreeFile& file) { return file.placement.native; });
    selection_.gpu_architectures.assign(architectures_.begin(), architectures_.end());
    selection_.files = std::move(files);
    return std::move(selection_);
  }

 private:
  absl::Status NoteFacts(const TreeFile& file, const fs::Fd& opened) {
    const bool is_timed =
        caches::StoresCompileTime(file.placement) && file.stat.bytes <= kTimedEntryBytesMax;
    const size_t size = is_timed ? static_cast<size_t>(file.stat.bytes) : kCubinHeadBytes;
    CW_ASSIGN_OR_RETURN(const std::string bytes, ReadRange(opened, 0, size));
    if (is_timed) {
      selection_.compile_time += caches::FindCompileTime(bytes);
    }
    if (const auto architecture = caches::CubinArchitecture(bytes); architecture.has_value()) {
      architectures_.insert(*architecture);
    }
    return absl::OkStatus();
  }

  const SelectionInput& input_;
  Selection selection_;
  std::set<std::string> architectures_;
  std::set<std::string, std::less<>> torn_paths_;
  std::set<std::string, std::less<>> torn_units_;
};

}  // namespace

absl::StatusOr<Selection> SelectFiles(std::vector<TreeFile> files, const SelectionInput& input) {
  Inspector inspector(input);
  for (const TreeFile& file : files) {
    CW_RETURN_IF_ERROR(inspector.Inspect(file));
  }
  return inspector.Finish(std::move(files));
}

}  // namespace cachewarm::capture
