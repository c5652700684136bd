// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/record_file.h"

#include <fmt/format.h>

#include "lib/codec/json.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {
namespace {

constexpr fs::WalkLimits kFolderLimits{.entries_max = 10'000, .depth_max = 1};

}  // namespace

void RecordReader::ReadDigests(std::string_view name, std::vector<Digest>& value,
                               const FieldLimits& limits) {
  std::vector<std::string> texts;
  reader_.Read(name, texts, limits.size_max);
  for (const std::string& text : texts) {
    if (absl::StatusOr<Digest> digest = Digest::Parse(text); digest.ok()) {
      value.push_back(*std::move(digest));
    } else {
      reader_.Fail(name, Message(digest.status()));
    }
  }
}

absl::StatusOr<codec::Json> ReadJsonFile(const fs::Dir& root, const std::string& path,
                                         int64_t bytes_max) {
  CW_ASSIGN_OR_RETURN(const std::string text, fs::ReadFile(root, path, bytes_max));
  absl::StatusOr<codec::Json> object =
      codec::ParseJson(text, {.bytes_max = static_cast<size_t>(bytes_max)});
  if (object.ok() && !object->is_object()) {
    return absl::InvalidArgumentError(fmt::format("{}: expected a JSON object", path));
  }
  return object.ok() ? std::move(object) : Annotate(object.status(), path);
}

absl::Status WriteJsonFile(const fs::Dir& root, const std::string& path, const codec::Json& object,
                           fs::Durable durable) {
  return fs::WriteFileAtomic(root, path, codec::DumpJson(object) + "\n", kRecordMode, durable);
}

absl::Status ForEachRecord(const fs::Dir& root, std::string_view folder,
                           const std::function<void(const std::string& path)>& visit) {
  std::vector<std::string> paths;
  CW_RETURN_IF_ERROR(fs::Walk(root, folder, kFolderLimits, [&](const fs::WalkEntry& entry) {
    if (entry.stat.type == fs::FileType::kFile && entry.path.ends_with(".json")) {
      paths.push_back(fmt::format("{}/{}", folder, entry.path));
    }
    return entry.stat.type == fs::FileType::kDirectory ? fs::WalkNext::kSkipDirectory
                                                       : fs::WalkNext::kContinue;
  }));
  for (const std::string& path : paths) {
    visit(path);
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::agent
