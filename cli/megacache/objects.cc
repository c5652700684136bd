// SPDX-License-Identifier: Apache-2.0
#include "cli/megacache/objects.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cli/run/directory.h"
#include "cli/run/torch_directory.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"
#include "lib/caches/file_check.h"
#include "lib/fs/file.h"
#include "lib/fs/tree.h"
#include "lib/megacache/kernels.h"
#include "lib/megacache/layout.h"

namespace cachewarm::cli {
namespace {

// Generated code above this size is not compared: the largest real source has 3 MB.
constexpr int64_t kSourceBytesMax = 64 << 20;

// A file that a bundle may hold, or a source file that only shows which kernel its unit compiles.
struct FoundFile {
  ObjectFiles::File file;
  caches::Placement placement;
};
// The files of one compile.
using Unit = std::vector<FoundFile>;

bool IsSource(std::string_view path) {
  return path.ends_with(".cpp") || path.ends_with(".cu");
}

// Returns "ab/cabcd" for "ab/cabcd.main.so": the names of the files of one compile begin with it.
std::string UnitName(const std::string& path) {
  return path.substr(0, path.find('.', path.rfind('/') + 1));
}

// Lists the files by unit. A unit of Triton is the directory of one kernel (Placement::unit).
absl::StatusOr<std::map<std::string, Unit>> ListUnits(const fs::Dir& directory) {
  std::map<std::string, Unit> units;
  CW_RETURN_IF_ERROR(fs::Walk(directory, "", {}, [&units](const fs::WalkEntry& entry) {
    if (entry.path == kOwnFiles) {
      return fs::WalkNext::kSkipDirectory;
    }
    const caches::Placement placement =
        caches::CacheTable::AllPresets().Classify(fmt::format("{}/{}", kTorchKind, entry.path));
    if (entry.stat.type == fs::FileType::kFile && (placement.carried() || IsSource(entry.path)) &&
        !megacache::NameOf(entry.path).has_value()) {
      const bool is_triton = placement.cache != "torchinductor" && !placement.unit.empty();
      units[is_triton ? placement.unit : UnitName(entry.path)].push_back(
          {{entry.path, entry.stat.bytes}, placement});
    }
    return fs::WalkNext::kContinue;
  }));
  return units;
}

class ObjectFinder {
 public:
  ObjectFinder(const fs::Dir& directory, std::span<const megacache::Entry> entries,
               const megacache::KernelSources& kernels)
      : directory_(directory), entries_(entries), kernels_(kernels) {}

  absl::Status Add(const Unit& unit) {
    CW_ASSIGN_OR_RETURN(const bool needed, IsNeeded(unit));
    if (!needed) {
      return absl::OkStatus();
    }
    CW_ASSIGN_OR_RETURN(const bool whole, IsWhole(unit));
    if (!whole) {
      return absl::OkStatus();
    }
    bool has_object = false;
    for (const FoundFile& each : unit) {
      if (each.placement.carried()) {
        found_.files.push_back(each.file);
        has_object = has_object || each.placement.role == caches::Role::kNative;
      }
    }
    if (kernel_.has_value() && has_object) {
      compiled_.insert(*kernel_);
    }
    return absl::OkStatus();
  }

  ObjectFiles Finish() {
    std::sort(found_.files.begin(), found_.files.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    found_.kernels = kernels_.size();
    found_.compiled = compiled_.size();
    return std::move(found_);
  }

 private:
  // True if one of the graphs in the artifact, or every graph, needs the unit. Sets `kernel_` for a
  // compiled kernel.
  absl::StatusOr<bool> IsNeeded(const Unit& unit) {
    kernel_.reset();
    bool is_code = false;
    for (const FoundFile& each : unit) {
      const std::string& path = each.file.path;
      if (each.placement.role == caches::Role::kProbeMarker) {
        return true;
      }
      const bool is_python = path.ends_with(".py");
      if ((!is_python && !IsSource(path)) || each.file.bytes > kSourceBytesMax) {
        is_code = is_code || each.placement.role == caches::Role::kNative;
        continue;
      }
      is_code = true;
      CW_ASSIGN_OR_RETURN(const std::string text, fs::ReadFile(directory_, path, kSourceBytesMax));
      kernel_ = is_python ? std::nullopt : kernels_.Find(text);
      if (kernel_.has_value() || (is_python && IsInEntry(text))) {
        return true;
      }
    }
    return !is_code;
  }

  bool IsInEntry(std::string_view text) const {
    return !text.empty() &&
           std::any_of(entries_.begin(), entries_.end(), [text](const megacache::Entry& entry) {
             return entry.content.find(text) != std::string_view::npos;
           });
  }

  absl::StatusOr<bool> IsWhole(const Unit& unit) {
    for (const FoundFile& each : unit) {
      if (!each.placement.carried()) {
        continue;
      }
      CW_ASSIGN_OR_RETURN(const fs::Fd file, directory_.OpenFile(each.file.path));
      const absl::Status whole = caches::CheckWhole(
          each.placement, each.file.path, static_cast<uint64_t>(each.file.bytes),
          [&file](uint64_t offset, size_t size) -> absl::StatusOr<std::string> {
            std::string bytes(size, '\0');
            CW_ASSIGN_OR_RETURN(const size_t read,
                                fs::ReadAt(file, static_cast<int64_t>(offset), bytes.data(), size));
            bytes.resize(read);
            return bytes;
          });
      if (absl::IsDataLoss(whole)) {
        found_.damaged.push_back(Message(whole));
        return false;
      }
      CW_RETURN_IF_ERROR(whole);
    }
    return true;
  }

  const fs::Dir& directory_;
  const std::span<const megacache::Entry> entries_;
  const megacache::KernelSources& kernels_;
  std::optional<size_t> kernel_;
  std::set<size_t> compiled_;
  ObjectFiles found_;
};

}  // namespace

absl::StatusOr<fs::Dir> OpenInductorDirectory(const std::string& path) {
  CW_ASSIGN_OR_RETURN(fs::Dir directory, fs::Dir::Open(path));
  auto inner = directory.OpenDir(kTorchKind);
  if (absl::IsNotFound(inner.status())) {
    return directory;
  }
  return inner;
}

absl::StatusOr<ObjectFiles> FindObjects(const std::optional<fs::Dir>& directory,
                                        std::span<const megacache::Entry> entries) {
  const megacache::KernelSources kernels(entries);
  if (!directory.has_value()) {
    return ObjectFiles{.kernels = kernels.size()};
  }
  CW_ASSIGN_OR_RETURN(const auto units, ListUnits(*directory));
  ObjectFinder finder(*directory, entries, kernels);
  for (const auto& [name, unit] : units) {
    CW_RETURN_IF_ERROR(finder.Add(unit));
  }
  return finder.Finish();
}

}  // namespace cachewarm::cli
