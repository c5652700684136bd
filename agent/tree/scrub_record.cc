// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/scrub_record.h"

#include <utility>

#include "agent/tree/layout.h"
#include "agent/tree/record_file.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"

namespace cachewarm::agent {
namespace {

using codec::Json;
using codec::Reader;

constexpr int64_t kScrubBytesMax = int64_t{128} << 20;
constexpr size_t kFilesMax = 1'000'000;

}  // namespace

absl::Status WriteScrubRecord(const fs::Dir& root, const std::string& generation,
                              const ScrubRecord& record) {
  Json modified_by_engine = Json::array();
  for (const FileStamp& file : record.modified_by_engine) {
    modified_by_engine.push_back({{"path", file.path},
                                  {"bytes", file.bytes},
                                  {"inode", file.inode},
                                  {"mtime", file.mtime_ns},
                                  {"ctime", file.ctime_ns}});
  }
  return WriteRecord(root, ScrubRecordPath(generation),
                     {{"atMilliseconds", record.at.time_since_epoch().count()},
                      {"entries", record.entries},
                      {"checked", record.checked},
                      {"modifiedByEngine", std::move(modified_by_engine)}});
}

absl::StatusOr<ScrubRecord> ReadScrubRecord(const fs::Dir& root, const std::string& generation) {
  const std::string path = ScrubRecordPath(generation);
  CW_ASSIGN_OR_RETURN(const Json object, ReadRecord(root, path, kScrubBytesMax));
  ScrubRecord record;
  Reader reader(object, path);
  int64_t milliseconds = 0;
  reader.Read("atMilliseconds", milliseconds).Read("entries", record.entries, 0);
  reader.Read("checked", record.checked, 0);
  record.at = WallTime(Duration(milliseconds));
  reader.List("modifiedByEngine", kFilesMax, [&](Reader& item) {
    FileStamp file;
    int64_t inode = 0;
    item.Require("path").Read("path", file.path).Read("bytes", file.bytes);
    item.Read("inode", inode).Read("mtime", file.mtime_ns).Read("ctime", file.ctime_ns);
    file.inode = static_cast<uint64_t>(inode);
    record.modified_by_engine.push_back(std::move(file));
  });
  CW_RETURN_IF_ERROR(reader.status());
  return record;
}

}  // namespace cachewarm::agent
