// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/registry/upload.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/http/text/percent.h"
#include "lib/http/text/url.h"

namespace cachewarm::bundle {
namespace {

using http::Method;

constexpr char kBytes[] = "application/octet-stream";
constexpr int kUploadUnknown = 404;
constexpr Duration kDeleteInactivity{1000};

// True if a chunk that failed with this error may succeed when it is sent again. OUT_OF_RANGE (HTTP
// 416) means that the registry has more or fewer bytes than expected.
bool IsRecoverable(const absl::Status& status) {
  return IsRetryable(status) || absl::IsOutOfRange(status);
}

// Returns the number of bytes in a range like "0-1999". Registries send "0-0" if they have no byte.
std::optional<int64_t> BytesOf(std::string_view range) {
  const size_t dash = range.find('-');
  int64_t last = -1;
  if (dash == std::string_view::npos) {
    return std::nullopt;
  }
  const char* end = range.data() + range.size();
  const auto [at, error] = std::from_chars(range.data() + dash + 1, end, last);
  if (error != std::errc() || at != end || last < 0 || last == INT64_MAX) {
    return std::nullopt;
  }
  return last == 0 ? 0 : last + 1;
}

absl::Status UploadStatus(const http::Response& response, std::string_view what) {
  absl::Status status = RegistryStatus(response, what);
  if (response.status == kUploadUnknown) {
    return absl::UnavailableError(fmt::format(
        "{}; the registry discarded the upload: send the whole blob again", Message(status)));
  }
  return status;
}

}  // namespace

RegistryUpload::RegistryUpload(Session& session, UploadTarget target, std::stop_token stop)
    : session_(session), target_(std::move(target)), stop_(std::move(stop)) {}

RegistryUpload::~RegistryUpload() {
  if (!location_.empty()) {
    http::Request request{
        .method = Method::kDelete, .url = location_, .inactivity = kDeleteInactivity};
    // The request does not get stop_: a stopped upload must be deleted, too.
    session_.SendOnce(request, target_.scope, {}).status().IgnoreError();
  }
}

absl::Status RegistryUpload::Write(std::string_view bytes) {
  const auto chunk_bytes = static_cast<size_t>(target_.chunk_bytes);
  hash_.Update(bytes);
  while (!bytes.empty()) {
    const size_t taken = std::min(bytes.size(), chunk_bytes - chunk_.size());
    chunk_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    // A full chunk is sent only when more bytes follow, so that a blob of one chunk needs a single
    // PUT.
    if (chunk_.size() == chunk_bytes && !bytes.empty()) {
      CW_RETURN_IF_ERROR(SendChunk());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Descriptor> RegistryUpload::Commit(const Digest& expected) {
  const auto bytes = sent_bytes_ + static_cast<int64_t>(chunk_.size());
  const Descriptor blob{.digest = hash_.Finish(), .bytes = bytes};
  CW_RETURN_IF_ERROR(CheckWritten(blob.digest, expected));
  if (location_.empty()) {
    CW_RETURN_IF_ERROR(Open());
  } else {
    CW_RETURN_IF_ERROR(SendChunk());
  }
  CW_RETURN_IF_ERROR(Close(blob.digest));
  location_.clear();
  return blob;
}

absl::Status RegistryUpload::Open() {
  const std::string url = target_.repository_url + "/blobs/uploads/";
  CW_ASSIGN_OR_RETURN(const http::Response response,
                      session_.Send({.method = Method::kPost, .url = url}, target_.scope, stop_));
  CW_RETURN_IF_ERROR(RegistryStatus(response, fmt::format("POST {}", url)));
  return Adopt(response);
}

absl::Status RegistryUpload::Adopt(const http::Response& opened) {
  location_ = target_.repository_url + "/blobs/uploads/";
  absl::Status followed = Follow(opened);
  if (!followed.ok()) {
    location_.clear();
  }
  return followed;
}

absl::Status RegistryUpload::SendChunk() {
  if (location_.empty()) {
    CW_RETURN_IF_ERROR(Open());
  }
  RetryBudget budget = session_.NewRetryBudget();
  while (!chunk_.empty()) {
    absl::Status status = Patch();
    if (status.ok()) {
      continue;
    }
    if (!IsRecoverable(status)) {
      return status;
    }
    const int64_t before = sent_bytes_;
    CW_RETURN_IF_ERROR(Recover(status, budget));
    if (sent_bytes_ > before) {
      budget.RecordProgress();
    }
  }
  return absl::OkStatus();
}

absl::Status RegistryUpload::Patch() {
  const auto size = static_cast<int64_t>(chunk_.size());
  http::Request request{
      .method = Method::kPatch,
      .url = location_,
      .headers = {{"Content-Type", kBytes},
                  {"Content-Range", fmt::format("{}-{}", sent_bytes_, sent_bytes_ + size - 1)}},
      .body = std::move(chunk_)};
  auto response = session_.SendOnce(request, target_.scope, stop_);
  chunk_ = std::move(request.body);
  CW_RETURN_IF_ERROR(response.status());
  CW_RETURN_IF_ERROR(UploadStatus(*response, NameOf(Method::kPatch, location_)));
  CW_RETURN_IF_ERROR(Follow(*response));
  chunk_.clear();
  sent_bytes_ += size;
  return absl::OkStatus();
}

absl::Status RegistryUpload::Close(const Digest& digest) {
  RetryBudget budget = session_.NewRetryBudget();
  for (;;) {
    absl::Status status = Put(digest);
    if (!IsRecoverable(status)) {
      return status;
    }
    const absl::Status recovered = Recover(status, budget);
    if (recovered.ok()) {
      continue;
    }
    // Perhaps only the response was lost: then the registry has closed the upload and the blob
    // exists.
    const auto there = BlobExists(digest);
    return there.ok() && *there ? absl::OkStatus() : recovered;
  }
}

absl::Status RegistryUpload::Put(const Digest& digest) {
  const char separator = location_.find('?') == std::string::npos ? '?' : '&';
  http::Request request{.method = Method::kPut,
                        .url = fmt::format("{}{}digest={}", location_, separator,
                                           http::PercentEncode(digest.ToString())),
                        .headers = {{"Content-Type", kBytes}},
                        .body = std::move(chunk_)};
  if (sent_bytes_ > 0 && !request.body.empty()) {
    const auto size = static_cast<int64_t>(request.body.size());
    request.headers.Set("Content-Range", fmt::format("{}-{}", sent_bytes_, sent_bytes_ + size - 1));
  }
  auto response = session_.SendOnce(request, target_.scope, stop_);
  chunk_ = std::move(request.body);
  CW_RETURN_IF_ERROR(response.status());
  return UploadStatus(*response, NameOf(Method::kPut, location_));
}

absl::Status RegistryUpload::Recover(const absl::Status& why, RetryBudget& budget) {
  http::Request request{.url = location_};
  for (absl::Status last = why;;) {
    CW_RETURN_IF_ERROR(budget.WaitBeforeRetry(last, stop_));
    const auto response = session_.SendOnce(request, target_.scope, stop_);
    last = response.ok() ? RegistryStatus(*response, NameOf(Method::kGet, location_))
                         : response.status();
    if (last.ok() || (response.ok() && response->status == kUploadUnknown)) {
      return Annotate(Resume(*response), Message(why));
    }
    if (!IsRetryable(last)) {
      return last;
    }
  }
}

absl::Status RegistryUpload::Resume(const http::Response& response) {
  CW_RETURN_IF_ERROR(UploadStatus(response, NameOf(Method::kGet, location_)));
  const std::string range = response.headers.Find("Range").value_or("");
  const auto has = BytesOf(range);
  const int64_t most = sent_bytes_ + static_cast<int64_t>(chunk_.size());
  if (!has.has_value() || *has < sent_bytes_ || *has > most) {
    return absl::UnavailableError(
        fmt::format("the registry reports range \"{}\" after it accepted {} bytes: send the whole "
                    "blob again",
                    range, sent_bytes_));
  }
  chunk_.erase(0, static_cast<size_t>(*has - sent_bytes_));
  sent_bytes_ = *has;
  return response.headers.Find("Location").has_value() ? Follow(response) : absl::OkStatus();
}

absl::StatusOr<bool> RegistryUpload::BlobExists(const Digest& digest) {
  const std::string url = fmt::format("{}/blobs/{}", target_.repository_url, digest.ToString());
  CW_ASSIGN_OR_RETURN(const http::Response response,
                      session_.Send({.method = Method::kHead, .url = url}, target_.scope, stop_));
  return response.status / 100 == 2 || response.status / 100 == 3;
}

absl::Status RegistryUpload::Follow(const http::Response& response) {
  const auto location = response.headers.Find("Location");
  if (!location.has_value()) {
    return absl::UnavailableError("the registry's response to an upload has no Location header");
  }
  CW_ASSIGN_OR_RETURN(const http::Url base, http::Url::Parse(location_));
  CW_ASSIGN_OR_RETURN(const http::Url next, http::ResolveLocation(base, *location));
  location_ = next.ToString();
  return absl::OkStatus();
}

}  // namespace cachewarm::bundle
