// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/gpu_images.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/caches/elf.h"

namespace cachewarm::caches {
namespace {

constexpr size_t kTableBytesMax = 256U << 10U;  // of the section headers, and of their names
constexpr size_t kNoteBytesMax = 64U << 10U;
constexpr size_t kSectionBytes = 64;
constexpr size_t kReadBytesMax = 1U << 20U;  // of one file
constexpr int kImagesMax = 4096;             // of all fat binaries of a file

// A fat binary, as fatbinary and nvFatbin of CUDA 12.9 to 13.5 write it: a header, then images,
// each with a header of its own. All numbers are little-endian.
constexpr uint32_t kFatbinMagic = 0xBA55ED50;
constexpr size_t kFatbinHeaderBytes = 16;
constexpr size_t kImageHeaderBytes = 48;
constexpr uint64_t kImagePtx = 1;
constexpr uint64_t kImageElf = 2;
constexpr uint64_t kArchitectureSpecific = 1U << 20U;  // suffix "a"
constexpr uint64_t kFamilySpecific = 1U << 21U;        // suffix "f"
constexpr uint64_t kAlignment = 8;                     // of fat binaries in a section

uint64_t UnsignedAt(std::string_view bytes, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = width; i > 0; --i) {
    value = value << 8U | static_cast<unsigned char>(bytes[at + i - 1]);
  }
  return value;
}

// Returns a function that reads like `read`, and reads nothing more once kReadBytesMax bytes were
// requested: a file can have thousands of sections that overlap, and of fat binaries without
// images.
ReadAt Bounded(const ReadAt& read) {
  return [&read, left = kReadBytesMax](uint64_t offset,
                                       size_t size) mutable -> absl::StatusOr<std::string> {
    if (size > left) {
      left = 0;
      return std::string();
    }
    left -= size;
    return read(offset, size);
  };
}

// A part of a file.
struct FileRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

std::string ImageArchitecture(std::string_view header) {
  const uint64_t kind = UnsignedAt(header, 0, 2);
  const uint64_t number = UnsignedAt(header, 28, 4);
  const uint64_t flags = UnsignedAt(header, 40, 8);
  if ((kind != kImagePtx && kind != kImageElf) || number < 10 || number > 9999) {
    return {};
  }
  std::string_view suffix;
  if ((flags & kArchitectureSpecific) != 0) {
    suffix = "a";
  } else if ((flags & kFamilySpecific) != 0) {
    suffix = "f";
  }
  return fmt::format("{}_{}{}", kind == kImagePtx ? "compute" : "sm", number, suffix);
}

// Adds the architectures of the images of one fat binary in `range`, and returns where it ends: at
// most range.end.
absl::StatusOr<uint64_t> ReadFatbin(const FileRange& range, const ReadAt& read, int& images,
                                    std::set<std::string>& out) {
  if (range.end - range.begin < kFatbinHeaderBytes) {
    return range.end;
  }
  CW_ASSIGN_OR_RETURN(const std::string head, read(range.begin, kFatbinHeaderBytes));
  if (head.size() < kFatbinHeaderBytes || UnsignedAt(head, 0, 4) != kFatbinMagic) {
    return range.end;
  }
  uint64_t at = range.begin + UnsignedAt(head, 6, 2);
  const uint64_t bytes = UnsignedAt(head, 8, 8);
  if (at > range.end || bytes > range.end - at) {
    return range.end;
  }
  const uint64_t end = at + bytes;
  while (end - at >= kImageHeaderBytes && images < kImagesMax) {
    ++images;
    CW_ASSIGN_OR_RETURN(const std::string header, read(at, kImageHeaderBytes));
    if (header.size() < kImageHeaderBytes) {
      return range.end;
    }
    const uint64_t header_bytes = UnsignedAt(header, 4, 4);
    const uint64_t payload = UnsignedAt(header, 8, 8);
    if (header_bytes < kImageHeaderBytes || header_bytes > end - at ||
        payload > end - at - header_bytes) {
      return range.end;
    }
    out.insert(ImageArchitecture(header));
    at += header_bytes + payload;
  }
  return images < kImagesMax ? end : range.end;
}

absl::Status ReadFatbins(FileRange range, const ReadAt& read, std::set<std::string>& out) {
  int images = 0;
  while (range.begin < range.end) {
    CW_ASSIGN_OR_RETURN(const uint64_t end, ReadFatbin(range, read, images, out));
    range.begin = std::max((end + kAlignment - 1) / kAlignment * kAlignment, range.begin + 1);
  }
  out.erase("");
  return absl::OkStatus();
}

// Returns the ranges of the sections with one of `names`, in a 64-bit little-endian ELF file.
absl::StatusOr<std::vector<FileRange>> FindSections(const ElfHeader& elf, std::string_view head,
                                                    uint64_t size, const ReadAt& read,
                                                    const std::vector<std::string_view>& names) {
  std::vector<FileRange> found;
  const uint64_t names_index = UnsignedAt(head, 62, 2);
  const uint64_t table_bytes = uint64_t{elf.sections} * elf.section_size;
  if (!elf.is_64_bit || elf.big_endian || elf.section_size < kSectionBytes ||
      names_index >= elf.sections || table_bytes > kTableBytesMax || elf.sections_end() > size) {
    return found;
  }
  CW_ASSIGN_OR_RETURN(const std::string table, read(elf.sections_at, size_t{table_bytes}));
  const auto range_of = [&](uint64_t index) -> std::optional<FileRange> {
    const size_t at = static_cast<size_t>(index) * elf.section_size;
    const uint64_t begin = UnsignedAt(table, at + 24, 8);
    const uint64_t bytes = UnsignedAt(table, at + 32, 8);
    return begin > size || bytes > size - begin ? std::nullopt
                                                : std::optional(FileRange{begin, begin + bytes});
  };
  if (table.size() < table_bytes) {
    return found;
  }
  const std::optional<FileRange> strings = range_of(names_index);
  if (!strings.has_value() || strings->end - strings->begin > kTableBytesMax) {
    return found;
  }
  CW_ASSIGN_OR_RETURN(const std::string texts,
                      read(strings->begin, static_cast<size_t>(strings->end - strings->begin)));
  for (uint64_t i = 0; i < elf.sections; ++i) {
    const size_t name = UnsignedAt(table, static_cast<size_t>(i) * elf.section_size, 4);
    if (name >= texts.size()) {
      continue;
    }
    const std::string_view text(texts.c_str() + name);  // ends at a NUL, at the latest at the end
    const std::optional<FileRange> range = range_of(i);
    if (range.has_value() && std::find(names.begin(), names.end(), text) != names.end()) {
      found.push_back(*range);
    }
  }
  return found;
}

// Returns the suffix that the command line in the tool note gives to `architecture`: "a" or "f" of
// "-arch sm_90a "; empty if it has none.
std::string SuffixInNote(std::string_view note, std::string_view architecture) {
  const std::string option = fmt::format("-arch {}", architecture);
  const size_t at = note.find(option);
  const size_t end = at + option.size();
  if (at == std::string_view::npos || end >= note.size()) {
    return {};
  }
  return note[end] == 'a' || note[end] == 'f' ? std::string(1, note[end]) : std::string();
}

absl::StatusOr<std::string> CubinWithSuffix(std::string architecture, const ElfHeader& elf,
                                            std::string_view head, uint64_t size,
                                            const ReadAt& read) {
  if (architecture.ends_with('a')) {
    return architecture;
  }
  CW_ASSIGN_OR_RETURN(const std::vector<FileRange> notes,
                      FindSections(elf, head, size, read, {".note.nv.tkinfo"}));
  for (const FileRange& range : notes) {
    CW_ASSIGN_OR_RETURN(
        const std::string note,
        read(range.begin, std::min<size_t>(range.end - range.begin, kNoteBytesMax)));
    if (const std::string suffix = SuffixInNote(note, architecture); !suffix.empty()) {
      return architecture + suffix;
    }
  }
  return architecture;
}

}  // namespace

absl::StatusOr<std::set<std::string>> FindGpuCode(uint64_t size, const ReadAt& file) {
  const ReadAt read = Bounded(file);
  std::set<std::string> out;
  CW_ASSIGN_OR_RETURN(const std::string head, read(0, kElfHeaderMax));
  if (head.size() >= 4 && UnsignedAt(head, 0, 4) == kFatbinMagic) {
    CW_RETURN_IF_ERROR(ReadFatbins({0, size}, read, out));
    return out;
  }
  const std::optional<ElfHeader> elf = ParseElfHeader(head);
  if (!elf.has_value() || head.size() < kElfHeaderMax) {
    return out;
  }
  if (const auto hsaco = HsacoArchitecture(head); hsaco.has_value()) {
    out.insert(*hsaco);
  } else if (const auto cubin = CubinArchitecture(head); cubin.has_value()) {
    CW_ASSIGN_OR_RETURN(std::string name, CubinWithSuffix(*cubin, *elf, head, size, read));
    out.insert(std::move(name));
  } else {
    CW_ASSIGN_OR_RETURN(const std::vector<FileRange> ranges,
                        FindSections(*elf, head, size, read, {".nv_fatbin", "__nv_relfatbin"}));
    for (const FileRange& range : ranges) {
      CW_RETURN_IF_ERROR(ReadFatbins(range, read, out));
    }
  }
  return out;
}

}  // namespace cachewarm::caches
