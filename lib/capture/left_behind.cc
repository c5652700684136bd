// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/left_behind.h"

#include <algorithm>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/api/json/limits.h"
#include "lib/bundle/utf8.h"

namespace cachewarm::capture {
namespace {

constexpr size_t kDirectoriesMax = 256;  // limit of the names kept in memory
constexpr size_t kNameBytesMax = 1024;   // longest directory name that is kept

// Returns the directory of the path, at most `depth` components of it; "." for a file at the root.
std::string_view DirectoryOf(std::string_view path, int depth) {
  const size_t last = path.rfind('/');
  if (last == std::string_view::npos) {
    return ".";
  }
  size_t end = 0;
  for (int i = 0; i < depth && end < last; ++i) {
    end = std::min(path.find('/', end + 1), last);
  }
  return path.substr(0, std::min(end, kNameBytesMax));
}

// Returns a name that is safe in a status, a log and a terminal.
std::string SafeName(std::string_view name) {
  std::string text = bundle::IsPlainUtf8(name) ? std::string(name) : bundle::Printable(name);
  if (text.size() > api::json::kLeftBehindNameBytes) {
    size_t end = api::json::kLeftBehindNameBytes - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
      --end;  // never cut inside a UTF-8 sequence
    }
    text.resize(end);
    text += "...";
  }
  return text;
}

}  // namespace

void LeftBehindSum::Add(std::string_view path, int64_t bytes) {
  ++files_;
  bytes_ += bytes;
  while (true) {
    const std::string_view directory = DirectoryOf(path, depth_);
    const auto found = directories_.find(directory);
    if (found != directories_.end()) {
      found->second += bytes;
      return;
    }
    if (directories_.size() < kDirectoriesMax) {
      directories_.emplace(directory, bytes);
      return;
    }
    if (depth_ == 1) {
      return;
    }
    Shorten();
  }
}

// Shortens the directory names by one component, and adds up the bytes of equal names.
void LeftBehindSum::Shorten() {
  --depth_;
  Directories shorter;
  for (const auto& [directory, bytes] : directories_) {
    shorter[std::string(DirectoryOf(directory + "/", depth_))] += bytes;
  }
  directories_ = std::move(shorter);
}

api::LeftBehind LeftBehindSum::Take() {
  while (directories_.size() > api::json::kLeftBehindDirectoriesMax && depth_ > 1) {
    Shorten();
  }
  std::vector<std::pair<int64_t, std::string>> largest;
  largest.reserve(directories_.size());
  for (const auto& [directory, bytes] : directories_) {
    largest.emplace_back(-bytes, SafeName(directory));
  }
  std::sort(largest.begin(), largest.end());
  api::LeftBehind left{.files = files_, .bytes = bytes_, .directories = {}};
  for (const auto& [bytes, name] : largest) {
    if (left.directories.size() < api::json::kLeftBehindDirectoriesMax) {
      left.directories.push_back(name);
    }
  }
  return left;
}

std::string ToText(const api::LeftBehind& left) {
  return left.files == 0 ? std::string()
                         : fmt::format("{} files, {:.1f} MB in {}", left.files,
                                       static_cast<double>(left.bytes) / 1e6,
                                       fmt::join(left.directories, ", "));
}

}  // namespace cachewarm::capture
