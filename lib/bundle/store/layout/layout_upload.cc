// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/layout/layout_upload.h"

#include <unistd.h>

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
constexpr int kNamesMax = 10'000;
// Each time this many bytes were written, the kernel's write-back is started, so that the final
// fsync is short.
constexpr int64_t kSyncedBytes = 8LL << 20;

class LayoutUpload : public BlobUpload {
 public:
  // The repository's directory is on the heap because the file keeps a pointer to it.
  static absl::StatusOr<std::unique_ptr<BlobUpload>> Start(fs::Dir repository,
                                                           std::stop_token stop) {
    auto held = std::make_unique<fs::Dir>(std::move(repository));
    CW_ASSIGN_OR_RETURN(UploadFile file, UploadFile::Start(*held));
    return std::unique_ptr<BlobUpload>(
        new LayoutUpload(std::move(held), std::move(file), std::move(stop)));
  }

  absl::Status Write(std::string_view bytes) override {
    if (stop_.stop_requested()) {
      return absl::CancelledError("the upload was stopped");
    }
    hash_.Update(bytes);
    bytes_ += static_cast<int64_t>(bytes.size());
    return file_.Write(bytes);
  }

  absl::StatusOr<Descriptor> Commit(const Digest& expected) override {
    Descriptor blob{.digest = hash_.Finish(), .bytes = bytes_};
    CW_RETURN_IF_ERROR(CheckWritten(blob.digest, expected));
    CW_RETURN_IF_ERROR(file_.MoveTo(fmt::format("{}/{}", kBlobs, blob.digest.hex()), kBlobMode));
    return blob;
  }

 private:
  LayoutUpload(std::unique_ptr<fs::Dir> repository, UploadFile file, std::stop_token stop)
      : repository_(std::move(repository)), file_(std::move(file)), stop_(std::move(stop)) {}

  const std::unique_ptr<fs::Dir> repository_;
  UploadFile file_;
  const std::stop_token stop_;
  Sha256 hash_;
  int64_t bytes_ = 0;
};

bool IsSameFile(const fs::Dir& repository, const std::string& name, const fs::Fd& file) {
  const auto expected = fs::StatFile(file);
  const auto found = repository.Stat(name);
  return expected.ok() && found.ok() && found->inode == expected->inode;
}

// Removes temporary files whose writer has exited: their lock is free. After it has locked a file,
// checks that the name still refers to that file, because a new writer may have reused the name.
void RemoveAbandoned(const fs::Dir& repository) {
  fs::Walk(repository, kUploads, {}, [&](const fs::WalkEntry& entry) {
    const std::string path = fmt::format("{}/{}", kUploads, entry.path);
    const auto lock = fs::TryLock(repository, path);
    if (lock.ok() && lock->has_value() && IsSameFile(repository, path, **lock)) {
      repository.Remove(path).IgnoreError();
    }
    return fs::WalkNext::kContinue;
  }).IgnoreError();
}

// Locks a file that was just created. False if RemoveAbandoned() of another process has locked or
// removed the file in the meantime.
absl::StatusOr<bool> LockNew(const fs::Dir& repository, const std::string& name,
                             const fs::Fd& file) {
  CW_ASSIGN_OR_RETURN(const bool locked, fs::TryLock(file));
  return locked && IsSameFile(repository, name, file);
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace

UploadFile::UploadFile(const fs::Dir& repository, std::string name, fs::Fd file)
    : repository_(&repository), name_(std::move(name)), file_(std::move(file)) {}

UploadFile::UploadFile(UploadFile&& other) noexcept
    : repository_(other.repository_),
      name_(std::exchange(other.name_, "")),
      file_(std::move(other.file_)),
      bytes_(other.bytes_),
      flushed_bytes_(other.flushed_bytes_) {}

UploadFile::~UploadFile() {
  if (!name_.empty()) {
    repository_->Remove(name_).IgnoreError();
  }
}

absl::StatusOr<UploadFile> UploadFile::Start(const fs::Dir& repository) {
  RemoveAbandoned(repository);
  for (int number = 0; number < kNamesMax; ++number) {
    const std::string name = fmt::format("{}/{}-{}", kUploads, ::getpid(), number);
    auto file = repository.CreateFile(name, 0600);
    if (absl::IsAlreadyExists(file.status())) {
      continue;
    }
    CW_RETURN_IF_ERROR(file.status());
    UploadFile upload(repository, name, *std::move(file));
    const auto locked = LockNew(repository, name, upload.file_);
    CW_RETURN_IF_ERROR(locked.status());
    if (*locked) {
      return upload;
    }
    // The name no longer belongs to this file: the file was removed, or another writer has reused
    // the name. Clear it, so that the destructor removes nothing.
    upload.name_.clear();
  }
  return absl::ResourceExhaustedError(
      fmt::format("{}/{}: too many uploads at once", repository.name(), kUploads));
}

absl::Status UploadFile::Write(std::string_view bytes) {
  CW_RETURN_IF_ERROR(Annotate(fs::WriteAll(file_, bytes), repository_->name()));
  bytes_ += static_cast<int64_t>(bytes.size());
  if (bytes_ - flushed_bytes_ >= kSyncedBytes) {
    fs::BeginSync(file_, flushed_bytes_, bytes_ - flushed_bytes_);
    flushed_bytes_ = bytes_;
  }
  return absl::OkStatus();
}

absl::StatusOr<fs::FileStat> UploadFile::Stat() const {
  return fs::StatFile(file_);
}

absl::Status UploadFile::MoveTo(const std::string& path, mode_t mode) {
  CW_RETURN_IF_ERROR(fs::SyncFile(file_));
  CW_RETURN_IF_ERROR(repository_->SetMode(name_, mode));
  CW_RETURN_IF_ERROR(repository_->Rename(name_, path));
  name_.clear();
  return repository_->Sync(FolderOf(path));
}

absl::StatusOr<std::unique_ptr<BlobUpload>> StartLayoutUpload(fs::Dir repository,
                                                              std::stop_token stop) {
  return LayoutUpload::Start(std::move(repository), std::move(stop));
}

}  // namespace cachewarm::bundle
