// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/agent/disk_log.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;

// Serializes the recorded calls, so that the log has them in the order in which they happened.
std::recursive_mutex g_mutex;

class Recording {
 public:
  explicit Recording(const std::string& path) { Scan(path); }

  const DiskLog& log() const { return log_; }

  NodeId OfDescriptor(int fd) const {
    struct stat found {};
    return ::fstat(fd, &found) == 0 ? Of(found) : 0;
  }

  // Splits `path` below the directory `fd`. Returns the node of its parent; 0: not recorded.
  NodeId ParentOf(int fd, const std::string& path, std::string& name) const {
    const size_t slash = path.rfind('/');
    name = path.substr(slash + 1);
    if (slash == std::string::npos) {
      return OfDescriptor(fd);
    }
    struct stat found {};
    return ::fstatat(fd, path.substr(0, slash).c_str(), &found, 0) == 0 ? Of(found) : 0;
  }

  NodeId OfName(int fd, const std::string& path) const {
    struct stat found {};
    return ::fstatat(fd, path.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 ? Of(found) : 0;
  }

  // Adds the node of a name that was just made.
  NodeId Add(int fd, const std::string& path, DiskNode node) {
    struct stat found {};
    if (::fstatat(fd, path.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
      return 0;
    }
    const auto id = static_cast<NodeId>(log_.nodes.size());
    log_.nodes.push_back(std::move(node));
    ids_[found.st_ino] = id;
    return id;
  }

  void Name(NodeId parent, const std::string& name, NodeId target, int group) {
    if (parent != 0) {
      log_.events.push_back({.kind = DiskEvent::Kind::kName,
                             .node = parent,
                             .name = name,
                             .target = target,
                             .group = group});
    }
  }

  void Write(NodeId file, int64_t offset, std::string bytes) {
    if (file != 0) {
      log_.events.push_back({.kind = DiskEvent::Kind::kWrite,
                             .node = file,
                             .offset = offset,
                             .bytes = std::move(bytes)});
    }
  }

  void Sync(NodeId node) {
    if (node != 0) {
      log_.events.push_back({.kind = DiskEvent::Kind::kSync, .node = node});
    }
  }

  void SyncAll(NodeId node) {
    if (node != 0) {
      log_.events.push_back({.kind = DiskEvent::Kind::kSyncAll});
    }
  }

  // Moves of directories are atomic on every file system with a journal. A file may keep its old
  // name beside the new one, or lose both.
  void Move(NodeId from, const std::string& from_name, NodeId to, const std::string& to_name,
            NodeId moved) {
    const bool is_directory =
        log_.nodes[static_cast<size_t>(moved)].type == DiskNode::Type::kDirectory;
    const int group = NextGroup();
    Name(to, to_name, moved, group);
    Name(from, from_name, 0, is_directory ? group : NextGroup());
  }

  int NextGroup() { return ++groups_; }

  // The inode number may be used again, also outside of the directory.
  void Forget(ino_t inode) { ids_.erase(inode); }

 private:
  NodeId Of(const struct stat& found) const {
    const auto id = found.st_dev == device_ ? ids_.find(found.st_ino) : ids_.end();
    return id == ids_.end() ? 0 : id->second;
  }

  NodeId Scan(const stdfs::path& path) {
    struct stat found {};
    EXPECT_EQ(::lstat(path.c_str(), &found), 0);
    device_ = found.st_dev;
    if (const auto known = ids_.find(found.st_ino); known != ids_.end()) {
      return known->second;  // a hard link
    }
    const auto id = static_cast<NodeId>(log_.nodes.size());
    ids_[found.st_ino] = id;
    log_.nodes.emplace_back();
    DiskNode node;
    if (S_ISDIR(found.st_mode)) {
      node.type = DiskNode::Type::kDirectory;
      for (const auto& entry : stdfs::directory_iterator(path)) {
        node.names[entry.path().filename().string()] = Scan(entry.path());
      }
    } else if (S_ISLNK(found.st_mode)) {
      node.type = DiskNode::Type::kSymlink;
      node.target = stdfs::read_symlink(path).string();
    } else {
      std::ifstream in(path, std::ios::binary);
      node.bytes = {std::istreambuf_iterator<char>(in), {}};
    }
    log_.nodes[static_cast<size_t>(id)] = std::move(node);
    return id;
  }

  DiskLog log_;
  dev_t device_ = 0;
  std::map<ino_t, NodeId> ids_;  // the present nodes
  int groups_ = 0;
};

std::optional<Recording> g_recording;

}  // namespace

DiskRecorder::DiskRecorder(const std::string& path) {
  const std::lock_guard lock(g_mutex);
  g_recording.emplace(path);
}

DiskRecorder::~DiskRecorder() {
  const std::lock_guard lock(g_mutex);
  g_recording.reset();
}

const DiskLog& DiskRecorder::log() const {
  return g_recording->log();
}

}  // namespace cachewarm::agent

// The linker calls __wrap_X where lib/fs calls X, and X where this file calls __real_X.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

using cachewarm::agent::DiskNode;
using cachewarm::agent::g_mutex;
using cachewarm::agent::g_recording;
using cachewarm::agent::NodeId;

ssize_t __real_write(int fd, const void* bytes, size_t count);
ssize_t __real_pwrite(int fd, const void* bytes, size_t count, off_t offset);
int __real_fsync(int fd);
int __real_syncfs(int fd);
int __real_renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned flags);
int __real_mkdirat(int fd, const char* path, mode_t mode);
int __real_mkdir(const char* path, mode_t mode);
int __real_unlinkat(int fd, const char* path, int flags);
int __real_linkat(int from_fd, const char* from, int to_fd, const char* to, int flags);
int __real_symlinkat(const char* target, int fd, const char* path);
long __real_syscall(long number, ...);

ssize_t __wrap_write(int fd, const void* bytes, size_t count) {
  const std::lock_guard lock(g_mutex);
  const NodeId file = g_recording.has_value() ? g_recording->OfDescriptor(fd) : 0;
  const off_t offset = file != 0 ? ::lseek(fd, 0, SEEK_CUR) : 0;
  const ssize_t written = __real_write(fd, bytes, count);
  if (file != 0 && written > 0) {
    g_recording->Write(file, offset,
                       {static_cast<const char*>(bytes), static_cast<size_t>(written)});
  }
  return written;
}

ssize_t __wrap_pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  const std::lock_guard lock(g_mutex);
  const ssize_t written = __real_pwrite(fd, bytes, count, offset);
  if (g_recording.has_value() && written > 0) {
    g_recording->Write(g_recording->OfDescriptor(fd), offset,
                       {static_cast<const char*>(bytes), static_cast<size_t>(written)});
  }
  return written;
}

int __wrap_fsync(int fd) {
  const std::lock_guard lock(g_mutex);
  const int result = __real_fsync(fd);
  if (g_recording.has_value() && result == 0) {
    g_recording->Sync(g_recording->OfDescriptor(fd));
  }
  return result;
}

int __wrap_syncfs(int fd) {
  const std::lock_guard lock(g_mutex);
  const NodeId node = g_recording.has_value() ? g_recording->OfDescriptor(fd) : 0;
  if (node == 0) {
    return __real_syncfs(fd);
  }
  g_recording->SyncAll(node);
  return 0;
}

int __wrap_renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) {
  const std::lock_guard lock(g_mutex);
  if (!g_recording.has_value()) {
    return __real_renameat2(from_fd, from, to_fd, to, flags);
  }
  std::string from_name;
  std::string to_name;
  const NodeId from_parent = g_recording->ParentOf(from_fd, from, from_name);
  const NodeId to_parent = g_recording->ParentOf(to_fd, to, to_name);
  const NodeId moved = g_recording->OfName(from_fd, from);
  const NodeId replaced = g_recording->OfName(to_fd, to);
  const int result = __real_renameat2(from_fd, from, to_fd, to, flags);
  if (result == 0 && moved != 0) {
    if ((flags & RENAME_EXCHANGE) != 0) {
      const int group = g_recording->NextGroup();
      g_recording->Name(to_parent, to_name, moved, group);
      g_recording->Name(from_parent, from_name, replaced, group);
    } else {
      g_recording->Move(from_parent, from_name, to_parent, to_name, moved);
    }
  }
  return result;
}

int __wrap_mkdirat(int fd, const char* path, mode_t mode) {
  const std::lock_guard lock(g_mutex);
  const int result = __real_mkdirat(fd, path, mode);
  std::string name;
  if (g_recording.has_value() && result == 0) {
    if (const NodeId parent = g_recording->ParentOf(fd, path, name); parent != 0) {
      const NodeId made = g_recording->Add(fd, path, {.type = DiskNode::Type::kDirectory});
      g_recording->Name(parent, name, made, g_recording->NextGroup());
    }
  }
  return result;
}

int __wrap_mkdir(const char* path, mode_t mode) {
  return __wrap_mkdirat(AT_FDCWD, path, mode);
}

int __wrap_unlinkat(int fd, const char* path, int flags) {
  const std::lock_guard lock(g_mutex);
  std::string name;
  const NodeId parent = g_recording.has_value() ? g_recording->ParentOf(fd, path, name) : 0;
  struct stat found {};
  const bool is_last = ::fstatat(fd, path, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
                       (S_ISDIR(found.st_mode) || found.st_nlink == 1);
  const int result = __real_unlinkat(fd, path, flags);
  if (result == 0 && parent != 0) {
    g_recording->Name(parent, name, 0, g_recording->NextGroup());
    if (is_last) {
      g_recording->Forget(found.st_ino);
    }
  }
  return result;
}

int __wrap_linkat(int from_fd, const char* from, int to_fd, const char* to, int flags) {
  const std::lock_guard lock(g_mutex);
  const int result = __real_linkat(from_fd, from, to_fd, to, flags);
  std::string name;
  if (g_recording.has_value() && result == 0) {
    const NodeId parent = g_recording->ParentOf(to_fd, to, name);
    g_recording->Name(parent, name, g_recording->OfName(to_fd, to), g_recording->NextGroup());
  }
  return result;
}

int __wrap_symlinkat(const char* target, int fd, const char* path) {
  const std::lock_guard lock(g_mutex);
  const int result = __real_symlinkat(target, fd, path);
  std::string name;
  if (g_recording.has_value() && result == 0) {
    if (const NodeId parent = g_recording->ParentOf(fd, path, name); parent != 0) {
      const NodeId made =
          g_recording->Add(fd, path, {.type = DiskNode::Type::kSymlink, .target = target});
      g_recording->Name(parent, name, made, g_recording->NextGroup());
    }
  }
  return result;
}

// Of openat2(2), the only system call without a function of its own that lib/fs makes.
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (number != SYS_openat2) {
    return __real_syscall(number, a, b, c, d, e, f);
  }
  const std::lock_guard lock(g_mutex);
  const int fd = static_cast<int>(a);
  const auto* path = reinterpret_cast<const char*>(b);
  const auto* how = reinterpret_cast<const open_how*>(c);
  struct stat found {};
  const bool is_new = g_recording.has_value() && (how->flags & O_CREAT) != 0 &&
                      ::fstatat(fd, path, &found, AT_SYMLINK_NOFOLLOW) != 0;
  const long result = __real_syscall(number, a, b, c, d, e, f);
  std::string name;
  if (is_new && result >= 0) {
    if (const NodeId parent = g_recording->ParentOf(fd, path, name); parent != 0) {
      const NodeId made = g_recording->Add(fd, path, {.type = DiskNode::Type::kFile});
      g_recording->Name(parent, name, made, g_recording->NextGroup());
    }
  }
  return result;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
