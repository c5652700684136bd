// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/unpack/members.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/base/digest.h"
#include "lib/base/status.h"
#include "lib/bundle/utf8.h"

namespace cachewarm::bundle {
namespace {

absl::Status UnlistedMember(const Member& member) {
  return absl::InvalidArgumentError(
      fmt::format("member \"{}\" is refused: the entry list does not name it in this frame",
                  Printable(member.path)));
}

absl::Status EntryMismatch(const Entry& entry, std::string_view what, int64_t found,
                           int64_t listed) {
  return absl::InvalidArgumentError(
      fmt::format("member \"{}\" is refused: its {} is {}, but {} in the entry list", entry.path,
                  what, found, listed));
}

absl::Status CheckListed(const Member& member, const Entry& entry) {
  if (member.bytes != entry.bytes) {
    return EntryMismatch(entry, "size", member.bytes, entry.bytes);
  }
  if (member.mtime_ns != entry.mtime_ns) {
    return EntryMismatch(entry, "mtime in nanoseconds", member.mtime_ns, entry.mtime_ns);
  }
  return absl::OkStatus();
}

}  // namespace

MemberStream::MemberStream(const Config& config, const std::vector<int64_t>& needed,
                           const MemberChecks& checks)
    : checks_(checks),
      newest_(FirstFrameOfNewestLayer(config)),
      directories_(ImpliedDirectories(config.entries)) {
  by_frame_.reserve(config.entries.size());
  for (const Entry& entry : config.entries) {
    by_frame_.push_back(&entry);
  }
  std::stable_sort(by_frame_.begin(), by_frame_.end(),
                   [](const Entry* a, const Entry* b) { return a->frame < b->frame; });
  for (const int64_t frame : needed) {
    expected_files_ += EntriesOf(frame).size();
  }
  for (const LargeFile& file : LargeFilesOf(config)) {
    AddLargeFile(file);
  }
}

MemberStream::Entries MemberStream::EntriesOf(int64_t frame) const {
  const auto first = std::partition_point(by_frame_.begin(), by_frame_.end(),
                                          [=](const Entry* e) { return e->frame < frame; });
  const auto last = std::partition_point(first, by_frame_.end(),
                                         [=](const Entry* e) { return e->frame == frame; });
  return {first, last};
}

void MemberStream::AddLargeFile(const LargeFile& file) {
  if (file.offsets.empty()) {
    return;
  }
  const int64_t first = file.entry->frame;
  PartedFile& parted =
      large_files_.emplace_back(*file.entry, file.frames, checks_.contents || first < newest_);
  for (size_t i = 0; i < file.offsets.size(); ++i) {
    const bool is_last = i + 1 == file.offsets.size();
    large_parts_[first + static_cast<int64_t>(i)] = {
        .file = &parted,
        .offset = file.offsets[i],
        .next_offset = is_last ? file.entry->bytes : file.offsets[i + 1]};
  }
}

absl::Status MemberStream::Handle(const RawFrame& frame, FileMaker& maker) {
  const Entries listed = EntriesOf(frame.index);
  if (!listed.empty()) {
    return HandleMembers(frame, listed, maker);
  }
  if (const auto part = large_parts_.find(frame.index); part != large_parts_.end()) {
    return ContinueLarge(frame, part->second, maker);
  }
  // Skip a frame of an older layer instead of parsing it: it may begin inside a file that the
  // bundle no longer has.
  return frame.index < newest_ ? absl::OkStatus() : HandleMembers(frame, listed, maker);
}

absl::Status MemberStream::HandleMembers(const RawFrame& frame, Entries listed, FileMaker& maker) {
  CW_ASSIGN_OR_RETURN(const std::vector<FilePart> pieces, Parse(frame, listed));
  for (const FilePart& piece : pieces) {
    if (piece.IsWhole()) {
      if (ChecksContents(frame) && DigestOf(piece.content) != piece.entry->digest) {
        return EntryDigestMismatch(*piece.entry);
      }
      CW_RETURN_IF_ERROR(WriteFile(*piece.entry, piece.content, maker));
      ++whole_files_;
      continue;
    }
    CW_RETURN_IF_ERROR(BeginLarge(frame, piece, maker));
  }
  return absl::OkStatus();
}

absl::Status MemberStream::CheckDirectory(const Member& member, const RawFrame& frame) const {
  return frame.index < newest_ || directories_.contains(member.path) ? absl::OkStatus()
                                                                     : UnlistedMember(member);
}

bool MemberStream::ChecksContents(const RawFrame& frame) const {
  return checks_.contents || frame.index < newest_;
}

bool MemberStream::MayHoldUnlisted(const Member& member, const RawFrame& frame) const {
  return frame.index < newest_ || (newest_ > 0 && IsWhiteout(member.path) && member.bytes == 0);
}

absl::StatusOr<std::string_view> MemberStream::LinkedContent(const Member& link, const Entry& entry,
                                                             const Parsed& parsed) {
  const auto& pieces = parsed.pieces;
  const auto found = std::lower_bound(
      pieces.begin(), pieces.end(), link.link,
      [](const FilePart& each, const auto& path) { return each.entry->path < path; });
  if (found != pieces.end() && found->entry->path == link.link) {
    if (found->entry->digest != entry.digest) {
      return EntryDigestMismatch(entry);
    }
    return found->content;
  }
  const auto skipped = parsed.skipped.find(link.link);
  if (skipped != parsed.skipped.end()) {
    return skipped->second;
  }
  return absl::InvalidArgumentError(
      fmt::format("member \"{}\" is refused: it is a hard link to \"{}\", which is not an earlier "
                  "file of its frame",
                  entry.path, link.link));
}

absl::Status MemberStream::SkipMember(const Member& member, const RawFrame& frame,
                                      TarReader& reader, Parsed& parsed) const {
  if (member.type == MemberType::kDirectory) {
    return CheckDirectory(member, frame);
  }
  if (!MayHoldUnlisted(member, frame)) {
    return UnlistedMember(member);
  }
  if (member.type == MemberType::kFile && member.bytes > 0) {
    CW_ASSIGN_OR_RETURN(const std::string_view content, reader.Content());
    if (static_cast<int64_t>(content.size()) == member.bytes) {
      parsed.skipped.emplace(member.path, content);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<MemberStream::FilePart>> MemberStream::Parse(const RawFrame& frame,
                                                                        Entries listed) const {
  TarReader reader(frame.raw);
  Parsed parsed;
  std::vector<FilePart>& pieces = parsed.pieces;
  pieces.reserve(listed.size());
  while (pieces.empty() || pieces.back().IsWhole()) {
    CW_ASSIGN_OR_RETURN(std::optional<Member> member, reader.Next());
    if (!member.has_value()) {
      break;
    }
    CW_RETURN_IF_ERROR(CheckMember(*member, checks_.limits));
    const Entry* entry = pieces.size() < listed.size() ? listed[pieces.size()] : nullptr;
    if (member->type == MemberType::kDirectory || entry == nullptr || entry->path != member->path) {
      CW_RETURN_IF_ERROR(SkipMember(*member, frame, reader, parsed));
      continue;
    }
    FilePart piece{.entry = entry};
    if (member->type == MemberType::kHardLink) {
      CW_ASSIGN_OR_RETURN(piece.content, LinkedContent(*member, *entry, parsed));
      member->bytes = static_cast<int64_t>(piece.content.size());
    }
    CW_RETURN_IF_ERROR(CheckListed(*member, *entry));
    if (member->type == MemberType::kFile && member->bytes > 0) {
      CW_ASSIGN_OR_RETURN(piece.content, reader.Content());
    }
    pieces.push_back(piece);
  }
  if (pieces.size() < listed.size()) {
    return absl::InvalidArgumentError(
        fmt::format("the bundle is refused: \"{}\" is not in frame {}", listed[pieces.size()]->path,
                    frame.index));
  }
  return std::move(parsed.pieces);
}

// Handles the frame in which a large file begins. Its tar header proves where the content of the
// other frames belongs.
absl::Status MemberStream::BeginLarge(const RawFrame& frame, const FilePart& piece,
                                      FileMaker& maker) {
  const auto part = large_parts_.find(frame.index);
  if (part == large_parts_.end() || &part->second.file->entry() != piece.entry) {
    if (!EntriesOf(frame.index + 1).empty()) {
      return absl::InvalidArgumentError(fmt::format(
          "member \"{}\" is refused: other members begin before it ends", piece.entry->path));
    }
    return absl::DataLossError(
        fmt::format("the layers end before the content of \"{}\"", piece.entry->path));
  }
  const int64_t expected = part->second.next_offset;
  if (static_cast<int64_t>(piece.content.size()) != expected) {
    return absl::InvalidArgumentError(
        fmt::format("member \"{}\" is refused: its first frame holds {} bytes of its content, but "
                    "{} by the sizes of its frames",
                    piece.entry->path, piece.content.size(), expected));
  }
  return WritePart(frame, part->second, piece.content, maker);
}

// Handles a frame that begins inside a large file: it holds a part of the content, followed only by
// padding.
absl::Status MemberStream::ContinueLarge(const RawFrame& frame, const LargePart& part,
                                         FileMaker& maker) {
  const auto content = std::min<size_t>(
      frame.raw.size(), static_cast<size_t>(std::max<int64_t>(0, part.next_offset - part.offset)));
  const std::string_view padding = frame.raw.substr(content);
  if (padding.size() >= size_t{kTarBlockBytes} ||
      padding.find_first_not_of('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError(fmt::format(
        "member \"{}\" is refused: its last frame also holds other data", part.file->entry().path));
  }
  return WritePart(frame, part, frame.raw.substr(0, content), maker);
}

absl::Status MemberStream::WritePart(const RawFrame& frame, const LargePart& part,
                                     std::string_view content, FileMaker& maker) {
  CW_RETURN_IF_ERROR(part.file->Write(part.offset, content, maker));
  if (part.file->is_checked()) {
    CW_RETURN_IF_ERROR(frame.AwaitEarlier());
  }
  CW_ASSIGN_OR_RETURN(const bool is_whole, part.file->EndPart(content, maker));
  whole_files_ += is_whole ? 1U : 0U;
  return absl::OkStatus();
}

absl::Status MemberStream::Finish() const {
  if (whole_files_ != expected_files_) {
    return absl::DataLossError(fmt::format("the layers hold only {} of the {} expected files",
                                           whole_files_.load(), expected_files_));
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::bundle
