// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/pack/member_reader.h"

#include <algorithm>

#include "lib/base/status.h"
#include "lib/bundle/pack/file_digest.h"
#include "lib/bundle/tar.h"

namespace cachewarm::bundle {

absl::StatusOr<std::string_view> MemberReader::Read(std::span<char> piece) {
  if (!begun_) {
    CW_RETURN_IF_ERROR(Begin());
    begun_ = true;
  }
  const size_t header = std::min(piece.size(), header_.size() - header_done_);
  std::copy_n(header_.data() + header_done_, header, piece.begin());
  header_done_ += header;
  piece = piece.subspan(header);
  const size_t content = std::min(piece.size(), static_cast<size_t>(left_bytes_));
  CW_RETURN_IF_ERROR(Content(piece.first(content)));
  if (source_ != nullptr && left_bytes_ == 0) {
    CW_RETURN_IF_ERROR(EndContent());
  }
  const std::span<char> padding = piece.subspan(content);
  std::fill(padding.begin(), padding.end(), '\0');
  return std::string_view(piece.data(), content);
}

absl::Status MemberReader::Begin() {
  CW_ASSIGN_OR_RETURN(header_, TarHeader(tree_.HeaderOf(member_)));
  if (!tree_.IsFile(member_) || tree_.IsLink(member_)) {
    return absl::OkStatus();
  }
  const PackFile& file = tree_.files[tree_.FileOf(member_)];
  CW_ASSIGN_OR_RETURN(source_, file.open());
  left_bytes_ = file.bytes;
  return absl::OkStatus();
}

absl::Status MemberReader::Content(std::span<char> piece) {
  while (!piece.empty()) {
    CW_ASSIGN_OR_RETURN(const size_t got, source_->Read(piece));
    if (got == 0) {
      return ChangedWhileRead(tree_.files[tree_.FileOf(member_)]);
    }
    left_bytes_ -= static_cast<int64_t>(got);
    piece = piece.subspan(got);
  }
  return absl::OkStatus();
}

absl::Status MemberReader::EndContent() {
  char beyond = 0;
  CW_ASSIGN_OR_RETURN(const size_t more, source_->Read({&beyond, 1}));
  if (more != 0) {
    return ChangedWhileRead(tree_.files[tree_.FileOf(member_)]);
  }
  source_.reset();
  return absl::OkStatus();
}

absl::Status SharedMember::Read(int64_t from, std::span<char> piece) {
  std::unique_lock lock(mutex_);
  read_.wait(lock, [&] { return done_bytes_ == from || !status_.ok(); });
  if (status_.ok()) {
    status_ = ReadNext(piece);
    done_bytes_ += static_cast<int64_t>(piece.size());
  }
  read_.notify_all();
  return status_;
}

absl::Status SharedMember::ReadNext(std::span<char> piece) {
  CW_ASSIGN_OR_RETURN(const std::string_view content, reader_.Read(piece));
  hash_.Update(content);
  left_bytes_ -= static_cast<int64_t>(content.size());
  if (left_bytes_ == 0) {
    entry_.digest = hash_.Finish();
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::bundle
