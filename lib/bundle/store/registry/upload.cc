// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/registry/upload.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/base/percent.h"
#include "lib/base/status.h"
#include "lib/http/url.h"

namespace cachewarm::bundle {
namespace {

constexpr char kBytes[] = "application/octet-stream";

}  // namespace

RegistryUpload::RegistryUpload(Session& session, UploadTarget target, std::stop_token stop)
    : session_(session), target_(std::move(target)), stop_(std::move(stop)) {}

absl::Status RegistryUpload::Write(std::string_view bytes) {
  const auto chunk_bytes = static_cast<size_t>(target_.chunk_bytes);
  hash_.Update(bytes);
  while (!bytes.empty()) {
    const size_t taken = std::min(bytes.size(), chunk_bytes - chunk_.size());
    chunk_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    // Only when more follows: a blob of one chunk goes up in one PUT.
    if (chunk_.size() == chunk_bytes && !bytes.empty()) {
      CW_RETURN_IF_ERROR(SendChunk());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Descriptor> RegistryUpload::Commit() {
  const auto bytes = sent_bytes_ + static_cast<int64_t>(chunk_.size());
  const Descriptor blob{.digest = hash_.Finish(), .bytes = bytes};
  if (location_.empty()) {
    CW_RETURN_IF_ERROR(Open());
  } else {
    CW_RETURN_IF_ERROR(SendChunk());
  }
  CW_RETURN_IF_ERROR(Close(blob.digest));
  return blob;
}

absl::Status RegistryUpload::Open() {
  const std::string url = target_.repository_url + "/blobs/uploads/";
  location_ = url;
  CW_ASSIGN_OR_RETURN(
      const http::Response response,
      session_.Send({.method = http::Method::kPost, .url = url}, target_.scope, stop_));
  CW_RETURN_IF_ERROR(RegistryStatus(response, fmt::format("POST {}", url)));
  return Follow(response);
}

absl::Status RegistryUpload::SendChunk() {
  if (location_.empty()) {
    CW_RETURN_IF_ERROR(Open());
  }
  if (chunk_.empty()) {
    return absl::OkStatus();
  }
  const auto size = static_cast<int64_t>(chunk_.size());
  http::Request request{
      .method = http::Method::kPatch,
      .url = location_,
      .headers = {{"Content-Type", kBytes},
                  {"Content-Range", fmt::format("{}-{}", sent_bytes_, sent_bytes_ + size - 1)}},
      .body = std::move(chunk_)};
  chunk_.clear();
  CW_ASSIGN_OR_RETURN(const http::Response response,
                      session_.Send(std::move(request), target_.scope, stop_));
  CW_RETURN_IF_ERROR(RegistryStatus(response, fmt::format("PATCH {}", location_)));
  sent_bytes_ += size;
  return Follow(response);
}

absl::Status RegistryUpload::Follow(const http::Response& response) {
  const auto location = response.headers.Find("Location");
  if (!location.has_value()) {
    return absl::UnavailableError("the registry answered an upload without a Location");
  }
  CW_ASSIGN_OR_RETURN(const http::Url base, http::Url::Parse(location_));
  CW_ASSIGN_OR_RETURN(const http::Url next, http::ResolveLocation(base, *location));
  location_ = next.ToString();
  return absl::OkStatus();
}

absl::Status RegistryUpload::Close(const Digest& digest) {
  const char separator = location_.find('?') == std::string::npos ? '?' : '&';
  http::Request request{
      .method = http::Method::kPut,
      .url = fmt::format("{}{}digest={}", location_, separator, PercentEncode(digest.ToString())),
      .headers = {{"Content-Type", kBytes}},
      .body = std::move(chunk_)};
  chunk_.clear();
  CW_ASSIGN_OR_RETURN(const http::Response response,
                      session_.Send(std::move(request), target_.scope, stop_));
  return RegistryStatus(response, fmt::format("PUT {}", location_));
}

}  // namespace cachewarm::bundle
