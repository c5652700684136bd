// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/layout/layout_upload.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "fmt/format.h"
#include "lib/base/digest.h"
#include "lib/base/status.h"
#include "lib/fs/file.h"
#include "lib/fs/lock.h"
#include "lib/fs/tree.h"

namespace cachewarm::bundle {
namespace {

constexpr mode_t kBlobMode = 0444;
constexpr int kNamesTried = 10'000;

class LayoutUpload : public BlobUpload {
 public:
  LayoutUpload(fs::Dir repository, std::string name, fs::Fd file, std::stop_token stop)
      : repository_(std::move(repository)),
        name_(std::move(name)),
        file_(std::move(file)),
        stop_(std::move(stop)) {}

  ~LayoutUpload() override {
    if (!committed_) {
      repository_.Remove(name_).IgnoreError();
    }
  }

  absl::Status Write(std::string_view bytes) override {
    if (stop_.stop_requested()) {
      return absl::CancelledError("the upload was stopped");
    }
    hash_.Update(bytes);
    bytes_ += static_cast<int64_t>(bytes.size());
    return Annotate(fs::WriteAll(file_, bytes), repository_.name());
  }

  absl::StatusOr<Descriptor> Commit() override {
    Descriptor blob{.digest = hash_.Finish(), .bytes = bytes_};
    CW_RETURN_IF_ERROR(fs::SyncFile(file_));
    CW_RETURN_IF_ERROR(repository_.SetMode(name_, kBlobMode));
    CW_RETURN_IF_ERROR(repository_.Rename(name_, fmt::format("{}/{}", kBlobs, blob.digest.hex())));
    committed_ = true;
    CW_RETURN_IF_ERROR(repository_.Sync(kBlobs));
    return blob;
  }

 private:
  const fs::Dir repository_;
  const std::string name_;
  const fs::Fd file_;
  const std::stop_token stop_;
  Sha256 hash_;
  int64_t bytes_ = 0;
  bool committed_ = false;
};

// Whoever made these files is dead: it let go of the lock.
void RemoveAbandoned(const fs::Dir& repository) {
  fs::Walk(repository, kUploads, {}, [&](const fs::WalkEntry& entry) {
    const std::string path = fmt::format("{}/{}", kUploads, entry.path);
    const auto file = repository.OpenFile(path);
    const auto locked = file.ok() ? fs::TryLock(*file) : false;
    if (locked.ok() && *locked) {
      repository.Remove(path).IgnoreError();
    }
    return fs::WalkNext::kGoOn;
  }).IgnoreError();
}

// False when RemoveAbandoned of another program was between our create and our lock.
absl::StatusOr<bool> LockNew(const fs::Dir& repository, const std::string& name,
                             const fs::Fd& file) {
  CW_ASSIGN_OR_RETURN(const bool locked, fs::TryLock(file));
  if (!locked) {
    return false;
  }
  CW_ASSIGN_OR_RETURN(const fs::FileStat ours, fs::StatFile(file));
  const auto found = repository.Stat(name);
  return found.ok() && found->inode == ours.inode;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BlobUpload>> StartLayoutUpload(fs::Dir repository,
                                                              std::stop_token stop) {
  RemoveAbandoned(repository);
  for (int number = 0; number < kNamesTried; ++number) {
    const std::string name = fmt::format("{}/{}-{}", kUploads, ::getpid(), number);
    auto file = repository.CreateFile(name, 0600);
    if (absl::IsAlreadyExists(file.status())) {
      continue;
    }
    CW_RETURN_IF_ERROR(file.status());
    CW_ASSIGN_OR_RETURN(const bool locked, LockNew(repository, name, *file));
    if (locked) {
      return std::make_unique<LayoutUpload>(std::move(repository), name, *std::move(file),
                                            std::move(stop));
    }
  }
  return absl::ResourceExhaustedError(
      fmt::format("{}/{}: too many uploads at once", repository.name(), kUploads));
}

}  // namespace cachewarm::bundle
