// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/members.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/utf8.h"

namespace cachewarm::bundle {
namespace {

absl::Status Unlisted(const Member& member) {
  return absl::InvalidArgumentError(fmt::format(
      "member \"{}\" is refused: the entry list does not name it there", Printable(member.path)));
}

absl::Status Unlike(const Entry& entry, std::string_view what, int64_t found, int64_t listed) {
  return absl::InvalidArgumentError(
      fmt::format("member \"{}\" is refused: its {} is {}, the entry list says {}", entry.path,
                  what, found, listed));
}

}  // namespace

std::set<std::string, std::less<>> ImpliedDirectories(const std::vector<Entry>& entries) {
  std::set<std::string, std::less<>> directories;
  for (const Entry& entry : entries) {
    // From the deepest up: where one is known, so are those above it.
    for (size_t end = entry.path.rfind('/'); end != std::string::npos && end > 0;
         end = entry.path.rfind('/', end - 1)) {
      if (!directories.insert(entry.path.substr(0, end)).second) {
        break;
      }
    }
  }
  return directories;
}

MemberStream::MemberStream(const Config& config, const Limits& limits, MemberTarget& target)
    : limits_(limits), target_(target), directories_(ImpliedDirectories(config.entries)) {
  by_frame_.reserve(config.entries.size());
  for (const Entry& entry : config.entries) {
    by_frame_.push_back(&entry);
  }
  std::stable_sort(by_frame_.begin(), by_frame_.end(),
                   [](const Entry* a, const Entry* b) { return a->frame < b->frame; });
}

absl::Status MemberStream::Frame(int64_t index, std::string_view raw) {
  if (open_ != nullptr) {
    return Rest(raw);
  }
  TarReader reader(raw);
  while (true) {
    CW_ASSIGN_OR_RETURN(const std::optional<Member> member, reader.Next());
    if (!member.has_value()) {
      break;
    }
    CW_RETURN_IF_ERROR(CheckMember(*member, limits_));
    if (member->type == MemberType::kDirectory) {
      if (!directories_.contains(member->path)) {
        return Unlisted(*member);
      }
      continue;
    }
    if (next_ == by_frame_.size() || by_frame_[next_]->frame != index ||
        by_frame_[next_]->path != member->path) {
      return Unlisted(*member);
    }
    CW_RETURN_IF_ERROR(File(*member, *by_frame_[next_++], reader));
    if (open_ != nullptr) {
      break;
    }
  }
  if (next_ < by_frame_.size() && by_frame_[next_]->frame <= index) {
    return absl::InvalidArgumentError(
        fmt::format("the bundle is refused: \"{}\" is not in frame {}", by_frame_[next_]->path,
                    by_frame_[next_]->frame));
  }
  return absl::OkStatus();
}

absl::Status MemberStream::File(const Member& member, const Entry& entry, TarReader& reader) {
  if (member.bytes != entry.bytes) {
    return Unlike(entry, "size", member.bytes, entry.bytes);
  }
  if (member.mtime_ns != entry.mtime_ns) {
    return Unlike(entry, "mtime in nanoseconds", member.mtime_ns, entry.mtime_ns);
  }
  CW_RETURN_IF_ERROR(target_.Begin(entry));
  open_ = &entry;
  left_bytes_ = entry.bytes;
  hash_.emplace();
  if (entry.bytes > 0) {
    CW_ASSIGN_OR_RETURN(const std::string_view content, reader.Content());
    CW_RETURN_IF_ERROR(Feed(content));
  }
  return left_bytes_ == 0 ? EndFile() : absl::OkStatus();
}

// A frame in the middle of a member: content, and after its end only padding.
absl::Status MemberStream::Rest(std::string_view raw) {
  const auto content = std::min<size_t>(raw.size(), static_cast<size_t>(left_bytes_));
  CW_RETURN_IF_ERROR(Feed(raw.substr(0, content)));
  const std::string_view padding = raw.substr(content);
  if (padding.size() >= size_t{kTarBlockBytes} ||
      padding.find_first_not_of('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError(fmt::format(
        "member \"{}\" is refused: something follows its end within a frame", open_->path));
  }
  return left_bytes_ == 0 ? EndFile() : absl::OkStatus();
}

absl::Status MemberStream::Feed(std::string_view content) {
  if (static_cast<int64_t>(content.size()) > left_bytes_) {
    return Unlike(*open_, "content longer by", static_cast<int64_t>(content.size()), left_bytes_);
  }
  hash_->Update(content);
  left_bytes_ -= static_cast<int64_t>(content.size());
  return target_.Write(content);
}

absl::Status MemberStream::EndFile() {
  const Entry& entry = *open_;
  open_ = nullptr;
  if (hash_->Finish() != entry.digest) {
    return absl::DataLossError(
        fmt::format("\"{}\" does not have the sha256 that the entry list says", entry.path));
  }
  return target_.End();
}

absl::Status MemberStream::Finish() const {
  if (open_ != nullptr || next_ != by_frame_.size()) {
    return absl::DataLossError(
        fmt::format("the layers hold {} of {} files", next_, by_frame_.size()));
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::bundle
