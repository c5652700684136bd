// SPDX-License-Identifier: Apache-2.0
#include "cli/run/sized_store.h"

#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::cli {

class SizedStore::Upload : public bundle::BlobUpload {
 public:
  Upload(SizedStore& store, std::unique_ptr<bundle::BlobUpload> inner)
      : store_(store), inner_(std::move(inner)) {}

  absl::Status Write(std::string_view bytes) override {
    store_.bytes_ += static_cast<int64_t>(bytes.size());
    if (store_.bytes_ > store_.bytes_max_) {
      return absl::OutOfRangeError(fmt::format(
          "the packed cache has more than {} bytes; raise --max-bytes", store_.bytes_max_));
    }
    return inner_->Write(bytes);
  }
  absl::StatusOr<bundle::Descriptor> Commit(const Digest& expected) override {
    return inner_->Commit(expected);
  }

 private:
  SizedStore& store_;
  std::unique_ptr<bundle::BlobUpload> inner_;
};

absl::StatusOr<std::unique_ptr<bundle::BlobUpload>> SizedStore::StartBlob(
    const std::string& repository, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(std::unique_ptr<bundle::BlobUpload> upload,
                      inner().StartBlob(repository, std::move(stop)));
  if (bytes_max_ == 0) {
    return upload;
  }
  return std::make_unique<Upload>(*this, std::move(upload));
}

}  // namespace cachewarm::cli
