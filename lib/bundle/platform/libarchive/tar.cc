// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/tar.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "lib/bundle/ustar_header.h"

namespace cachewarm::bundle {
namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

struct FreeEntry {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};
struct FreeWriter {
  void operator()(archive* writer) const { archive_write_free(writer); }
};
struct FreeReader {
  void operator()(archive* reader) const { archive_read_free(reader); }
};

// Collects the header of a member, and drops what libarchive writes after it: when the archive is
// freed without the member's content, libarchive adds padding and the end of the archive.
// (archive_write_fail would prevent these bytes, but leaks the member's sparse map.)
struct HeaderText {
  std::string text;
  bool whole = false;  // `text` is complete: drop all further bytes
};

la_ssize_t Append(archive* /*writer*/, void* header, const void* bytes, size_t size) {
  if (auto* kept = static_cast<HeaderText*>(header); !kept->whole) {
    kept->text.append(static_cast<const char*>(bytes), size);
  }
  return static_cast<la_ssize_t>(size);
}

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string ErrorOf(archive* handle) {
  const char* text = archive_error_string(handle);
  return text == nullptr ? "unknown error" : text;
}

std::unique_ptr<archive_entry, FreeEntry> EntryOf(const Member& member) {
  std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
  const bool directory = member.type == MemberType::kDirectory;
  archive_entry_set_pathname(entry.get(), (member.path + (directory ? "/" : "")).c_str());
  archive_entry_set_filetype(entry.get(), directory ? AE_IFDIR : AE_IFREG);
  archive_entry_set_perm(entry.get(), member.mode);
  archive_entry_set_size(entry.get(), member.bytes);
  if (member.type == MemberType::kHardLink) {
    archive_entry_set_hardlink(entry.get(), member.link.c_str());
  }
  archive_entry_set_mtime(entry.get(), member.mtime_ns / kNanosecondsPerSecond,
                          static_cast<long>(member.mtime_ns % kNanosecondsPerSecond));
  return entry;
}

// Returns the mtime in nanoseconds. Clamps the seconds, because those of an untrusted header may be
// so many that the result would overflow.
int64_t MtimeOf(archive_entry* entry) {
  constexpr int64_t kSecondsMax = INT64_MAX / kNanosecondsPerSecond - 1;
  const int64_t seconds =
      std::clamp<int64_t>(archive_entry_mtime(entry), -kSecondsMax, kSecondsMax);
  return seconds * kNanosecondsPerSecond + archive_entry_mtime_nsec(entry);
}

MemberType TypeOf(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) {
    return MemberType::kHardLink;
  }
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return MemberType::kFile;
    case AE_IFDIR:
      return MemberType::kDirectory;
    case AE_IFLNK:
      return MemberType::kSymbolicLink;
    case AE_IFCHR:
    case AE_IFBLK:
      return MemberType::kDevice;
    case AE_IFIFO:
      return MemberType::kFifo;
    default:
      return MemberType::kOther;
  }
}

Member MemberOf(archive_entry* entry) {
  const char* path = archive_entry_pathname(entry);
  const char* link = archive_entry_hardlink(entry);
  Member member{.path = path == nullptr ? "" : path,
                .type = TypeOf(entry),
                .link = link == nullptr ? "" : link,
                .bytes = archive_entry_size(entry),
                .mtime_ns = MtimeOf(entry),
                .mode = archive_entry_perm(entry),
                .sparse = archive_entry_sparse_count(entry) > 0,
                .has_extended_attributes =
                    archive_entry_xattr_count(entry) > 0 || archive_entry_acl_types(entry) != 0};
  if (member.type == MemberType::kDirectory && member.path.ends_with('/')) {
    member.path.pop_back();
  }
  return member;
}

}  // namespace

absl::StatusOr<std::string> TarHeader(const Member& member) {
  if (std::optional<std::string> plain = UstarHeader(member); plain.has_value()) {
    return *std::move(plain);
  }
  HeaderText header;
  const std::unique_ptr<archive, FreeWriter> writer(archive_write_new());
  // Use full pax, which takes 1 KiB more per member, only if needed: restricted pax drops the
  // nanoseconds of the mtime.
  if (member.mtime_ns % kNanosecondsPerSecond != 0) {
    archive_write_set_format_pax(writer.get());
  } else {
    archive_write_set_format_pax_restricted(writer.get());
  }
  if (!IsAscii(member.path) || !IsAscii(member.link)) {
    // Paths are UTF-8 (policy.h). Without this option the library converts them from the locale.
    archive_write_set_options(writer.get(), "pax:hdrcharset=BINARY");
  }
  archive_write_set_bytes_per_block(writer.get(), 0);
  if (archive_write_open(writer.get(), &header, nullptr, &Append, nullptr) != ARCHIVE_OK ||
      archive_write_header(writer.get(), EntryOf(member).get()) != ARCHIVE_OK) {
    return absl::InvalidArgumentError(fmt::format("{}: cannot be written as a tar member: {}",
                                                  member.path, ErrorOf(writer.get())));
  }
  header.whole = true;
  return std::move(header.text);
}

std::string TarEnd() {
  return std::string(2 * kTarBlockBytes, '\0');
}

struct TarReader::State {
  std::unique_ptr<archive, FreeReader> reader{archive_read_new()};
  std::string_view piece;
  absl::Status opened;
};

TarReader::TarReader(std::string_view piece) : state_(std::make_unique<State>()) {
  state_->piece = piece;
  archive* reader = state_->reader.get();
  archive_read_support_format_tar(reader);
  if (archive_read_open_memory(reader, piece.data(), piece.size()) != ARCHIVE_OK) {
    state_->opened = absl::DataLossError(fmt::format("tar: {}", ErrorOf(reader)));
  }
}

TarReader::TarReader(TarReader&&) noexcept = default;
TarReader& TarReader::operator=(TarReader&&) noexcept = default;
TarReader::~TarReader() = default;

absl::StatusOr<std::optional<Member>> TarReader::Next() {
  if (!state_->opened.ok()) {
    return state_->opened;
  }
  archive_entry* entry = nullptr;
  const int result = archive_read_next_header(state_->reader.get(), &entry);
  if (result == ARCHIVE_EOF) {
    return std::nullopt;
  }
  // Accept only OK: a flipped header byte may cause just ARCHIVE_RETRY or a warning.
  if (result != ARCHIVE_OK) {
    return absl::DataLossError(fmt::format("tar: {}", ErrorOf(state_->reader.get())));
  }
  return MemberOf(entry);
}

absl::StatusOr<std::string_view> TarReader::Content() {
  const void* block = nullptr;
  size_t size = 0;
  la_int64_t offset = 0;
  const int result = archive_read_data_block(state_->reader.get(), &block, &size, &offset);
  if (result == ARCHIVE_EOF) {
    return std::string_view();
  }
  if (result != ARCHIVE_OK) {
    return absl::DataLossError(fmt::format("tar: {}", ErrorOf(state_->reader.get())));
  }
  // If libarchive cannot return the content as one block of the piece, it returns a copy, which the
  // next member would overwrite. Reject the copy.
  const auto* const content = static_cast<const char*>(block);
  const std::string_view piece = state_->piece;
  if (std::less<>()(content, piece.data()) ||
      std::less<>()(piece.data() + piece.size(), content + size)) {
    return absl::InternalError("tar: libarchive returned a copy of a member's content");
  }
  return std::string_view(content, size);
}

}  // namespace cachewarm::bundle
