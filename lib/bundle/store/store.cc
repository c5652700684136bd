// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/store.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::bundle {
namespace {

constexpr size_t kRepositoryBytesMax = 255;
constexpr size_t kTagBytesMax = 128;

bool IsLowerAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool IsSeparator(std::string_view run) {
  return run == "." || run == "_" || run == "__" || run.find_first_not_of('-') == run.npos;
}

// True if `part` consists of runs of [a-z0-9] with exactly one separator between two of them.
bool IsRepositoryPart(std::string_view part) {
  if (part.empty() || !IsLowerAlphanumeric(part.front()) || !IsLowerAlphanumeric(part.back())) {
    return false;
  }
  for (size_t i = 0; i < part.size();) {
    if (IsLowerAlphanumeric(part[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (!IsLowerAlphanumeric(part[end])) {
      ++end;
    }
    if (!IsSeparator(part.substr(i, end - i))) {
      return false;
    }
    i = end;
  }
  return true;
}

}  // namespace

absl::Status CheckRepository(std::string_view repository) {
  bool good = repository.size() <= kRepositoryBytesMax;
  for (std::string_view rest = repository; good;) {
    const size_t slash = rest.find('/');
    good = IsRepositoryPart(rest.substr(0, slash));
    if (slash == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(slash + 1);
  }
  return good ? absl::OkStatus()
              : absl::InvalidArgumentError(fmt::format(
                    "repository \"{}\": expected lower-case letters and digits, separated by "
                    "single . _ - or /, at most {} bytes",
                    repository.substr(0, kRepositoryBytesMax), kRepositoryBytesMax));
}

absl::Status CheckTag(std::string_view tag) {
  const auto is_word = [](char c) {
    return IsLowerAlphanumeric(c) || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const bool good = !tag.empty() && tag.size() <= kTagBytesMax && is_word(tag.front()) &&
                    std::all_of(tag.begin(), tag.end(),
                                [&](char c) { return is_word(c) || c == '.' || c == '-'; });
  return good ? absl::OkStatus()
              : absl::InvalidArgumentError(fmt::format(
                    "tag \"{}\": expected up to {} letters, digits, '_', '.' and '-', not starting "
                    "with '.' or '-'",
                    tag.substr(0, kTagBytesMax), kTagBytesMax));
}

absl::StatusOr<bool> Store::MountBlob(const std::string& from, const std::string& repository,
                                      const Digest& /*digest*/, std::stop_token /*stop*/) {
  CW_RETURN_IF_ERROR(CheckRepository(from));
  CW_RETURN_IF_ERROR(CheckRepository(repository));
  return false;
}

absl::StatusOr<std::string> ReadSmallBlob(Store& store, const std::string& repository,
                                          const Descriptor& blob, int64_t bytes_max,
                                          std::stop_token stop) {
  if (blob.bytes > bytes_max) {
    return absl::ResourceExhaustedError(fmt::format("blob {} has {} bytes, more than {}",
                                                    blob.digest.Short(), blob.bytes, bytes_max));
  }
  TextSink text(static_cast<size_t>(blob.bytes));
  CW_RETURN_IF_ERROR(
      store.ReadBlob(repository, {.digest = blob.digest, .bytes = blob.bytes}, text, stop));
  if (DigestOf(text.text()) != blob.digest) {
    return absl::DataLossError(
        fmt::format("blob {} does not match its digest", blob.digest.Short()));
  }
  return std::move(text.text());
}

absl::Status CheckWritten(const Digest& written, const Digest& expected) {
  return expected.empty() || written == expected
             ? absl::OkStatus()
             : absl::DataLossError(fmt::format("blob {} does not match its digest: the written "
                                               "bytes have sha256 {}",
                                               expected.Short(), written.Short()));
}

absl::StatusOr<Descriptor> WriteSmallBlob(Store& store, const std::string& repository,
                                          std::string_view bytes, std::stop_token stop) {
  const Descriptor blob{.digest = DigestOf(bytes), .bytes = static_cast<int64_t>(bytes.size())};
  CW_ASSIGN_OR_RETURN(const bool there, store.HasBlob(repository, blob.digest, stop));
  if (there) {
    const auto text = ReadSmallBlob(store, repository, blob, blob.bytes, stop);
    // NOT_FOUND: a sweep holds the blob for a moment, or has removed it.
    if (text.ok() || !(absl::IsDataLoss(text.status()) || absl::IsNotFound(text.status()))) {
      return text.ok() ? absl::StatusOr<Descriptor>(blob) : text.status();
    }
  }
  CW_ASSIGN_OR_RETURN(const std::unique_ptr<BlobUpload> upload, store.StartBlob(repository, stop));
  CW_RETURN_IF_ERROR(upload->Write(bytes));
  return upload->Commit(blob.digest);
}

}  // namespace cachewarm::bundle
