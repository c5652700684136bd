// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "agent/tree/layout.h"
#include "agent/tree/record_file.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"
#include "lib/codec/tab_line.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {
namespace {

using codec::Json;
using codec::Reader;

constexpr int64_t kEntriesBytesMax = int64_t{128} << 20;
constexpr size_t kEntriesMax = 1'000'000;
constexpr size_t kDigestsMax = 64;

void ReadDigest(Reader& reader, std::string_view name, Digest& out) {
  std::string text;
  reader.Read(name, text);
  if (text.empty()) {
    return;
  }
  absl::StatusOr<Digest> digest = Digest::Parse(text);
  if (!digest.ok()) {
    reader.Fail(name, Message(digest.status()));
    return;
  }
  out = *std::move(digest);
}

void ReadTime(Reader& reader, std::string_view name, WallTime& out) {
  int64_t milliseconds = 0;
  reader.Read(name, milliseconds);
  out = WallTime(Duration(milliseconds));
}

Json ActivationsToJson(const std::vector<Activation>& activations) {
  Json list = Json::array();
  for (const Activation& activation : activations) {
    list.push_back({{"generation", activation.generation},
                    {"atMilliseconds", activation.at.time_since_epoch().count()},
                    {"renew", activation.renew}});
  }
  return {{"activations", std::move(list)}};
}

api::CaptureState StateNamed(std::string_view name) {
  return name == api::Name(api::CaptureState::kPushed) ? api::CaptureState::kPushed
                                                       : api::CaptureState::kFailed;
}

absl::StatusOr<api::CaptureStatus> DecodeCapture(const Json& object) {
  api::CaptureStatus capture;
  std::string state;
  int64_t files = 0;
  Reader reader(object, "capture");
  reader.Require("id").Read("id", capture.id).Read("state", state).Read("bytes", capture.bytes);
  reader.Read("files", files, 0, INT32_MAX).Read("native", capture.native);
  reader.Read("compileSeconds", capture.compile_seconds).Read("reason", capture.reason);
  reader.Read("message", capture.message);
  reader.Read("leftFiles", capture.left_behind.files, 0)
      .Read("leftBytes", capture.left_behind.bytes, 0)
      .Read("leftDirectories", capture.left_behind.directories);
  ReadDigest(reader, "digest", capture.digest);
  CW_RETURN_IF_ERROR(reader.status());
  capture.files = static_cast<int>(files);
  capture.state = StateNamed(state);
  return capture;
}

// Encodes entries as tab-separated lines, because encoding them as JSON would take longer than
// writing the files.
std::string EntryLines(const std::vector<EntryRecord>& entries) {
  std::string lines;
  for (const EntryRecord& entry : entries) {
    fmt::format_to(std::back_inserter(lines), "{}\t{}\t{}\t{}\t{}\t{}\t{}\n", entry.path,
                   entry.kind, entry.digest.hex(), entry.bytes, entry.inode, entry.mtime_ns,
                   entry.ctime_ns);
  }
  return lines;
}

absl::StatusOr<EntryRecord> ReadEntryLine(std::string_view text) {
  constexpr size_t kPathBytesMax = 4096;
  constexpr size_t kKindBytesMax = 64;
  codec::TabLine line(text);
  EntryRecord entry;
  entry.path = line.Text("path", kPathBytesMax);
  entry.kind = line.Text("kind", kKindBytesMax);
  entry.digest = line.Sha256("sha256");
  entry.bytes = line.Number("bytes", 0);
  entry.inode = static_cast<uint64_t>(line.Number("inode", 0));
  entry.mtime_ns = line.Number("mtime", INT64_MIN);
  entry.ctime_ns = line.Number("ctime", INT64_MIN);
  if (line.has_more()) {
    line.Fail("ctime", "unexpected text after this last field");
  }
  CW_RETURN_IF_ERROR(line.status());
  return entry;
}

}  // namespace

absl::Status WriteGenerationRecord(const fs::Dir& root, const GenerationRecord& record,
                                   const std::vector<EntryRecord>& entries, fs::Durable durable) {
  CW_RETURN_IF_ERROR(fs::WriteFileAtomic(root, EntriesRecordPath(record.id), EntryLines(entries),
                                         kRecordMode, durable));
  Json digests = Json::array();
  for (const Digest& digest : record.digests) {
    digests.push_back(digest.ToString());
  }
  return WriteRecord(root, GenerationRecordPath(record.id),
                     {{"id", record.id},
                      {"namespace", record.mount.ns},
                      {"name", record.mount.name},
                      {"warmupUID", record.mount.uid},
                      {"runAs", record.mount.run_as},
                      {"digests", std::move(digests)},
                      {"files", record.files},
                      {"bytes", record.bytes},
                      {"fetchSeconds", record.fetch_seconds}},
                     durable);
}

absl::StatusOr<GenerationRecord> ReadGenerationRecord(const fs::Dir& root, const std::string& id) {
  CW_ASSIGN_OR_RETURN(const Json object,
                      ReadRecord(root, GenerationRecordPath(id), kRecordBytesMax));
  GenerationRecord record;
  Reader reader(object, GenerationRecordPath(id));
  std::vector<std::string> digests;
  reader.Require("id").Read("id", record.id).Read("namespace", record.mount.ns);
  reader.Read("name", record.mount.name).Read("warmupUID", record.mount.uid);
  reader.Read("runAs", record.mount.run_as).Read("digests", digests, kDigestsMax);
  reader.Read("files", record.files).Read("bytes", record.bytes);
  reader.Read("fetchSeconds", record.fetch_seconds);
  if (record.id != id) {
    reader.Fail("id", "does not match the file name");
  }
  CW_RETURN_IF_ERROR(reader.status());
  for (const std::string& text : digests) {
    CW_ASSIGN_OR_RETURN(Digest digest, Digest::Parse(text));
    record.digests.push_back(std::move(digest));
  }
  return record;
}

absl::StatusOr<std::vector<EntryRecord>> ReadEntryRecords(const fs::Dir& root,
                                                          const std::string& id) {
  const std::string path = EntriesRecordPath(id);
  CW_ASSIGN_OR_RETURN(const std::string text, fs::ReadFile(root, path, kEntriesBytesMax));
  std::vector<EntryRecord> entries;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos || entries.size() == kEntriesMax) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: line {} is truncated, or the file has too many lines", path, entries.size() + 1));
    }
    absl::StatusOr<EntryRecord> entry = ReadEntryLine(rest.substr(0, end));
    CW_RETURN_IF_ERROR(
        Annotate(entry.status(), fmt::format("{}: line {}", path, entries.size() + 1)));
    entries.push_back(*std::move(entry));
    rest.remove_prefix(end + 1);
  }
  return entries;
}

std::vector<Activation> ReadActivations(const fs::Dir& root, const Mount& mount) {
  const absl::StatusOr<Json> object = ReadRecord(root, LinkRecordPath(mount), kRecordBytesMax);
  if (!object.ok()) {
    return {};
  }
  std::vector<Activation> activations;
  Reader reader(*object, LinkRecordPath(mount));
  reader.List("activations", 4 * kActivationsMax, [&](Reader& item) {
    Activation activation;
    item.Read("generation", activation.generation);
    ReadTime(item, "atMilliseconds", activation.at);
    item.Read("renew", activation.renew, 0, INT32_MAX);
    if (IsGenerationId(activation.generation)) {
      activations.push_back(std::move(activation));
    }
  });
  return activations;
}

absl::Status RecordActivation(const fs::Dir& root, const Mount& mount,
                              const Activation& activation) {
  std::vector<Activation> activations = ReadActivations(root, mount);
  activations.push_back(activation);
  if (activations.size() > kActivationsMax) {
    activations.erase(activations.begin(),
                      activations.end() - static_cast<ptrdiff_t>(kActivationsMax));
  }
  return WriteRecord(root, LinkRecordPath(mount), ActivationsToJson(activations));
}

absl::Status RepairActivations(const fs::Dir& root, const Mount& mount,
                               const std::string& generation, WallTime now) {
  std::vector<Activation> activations = ReadActivations(root, mount);
  if (!activations.empty() && activations.back().generation == generation) {
    return absl::OkStatus();
  }
  // After a crash, the journal may be one activation ahead of the link: drop that one. Any other
  // difference means that the link was changed manually at an unknown time: record it with the
  // present time.
  if (activations.size() > 1 && activations[activations.size() - 2].generation == generation) {
    activations.pop_back();
  } else {
    activations.push_back({generation, now});
  }
  return WriteRecord(root, LinkRecordPath(mount), ActivationsToJson(activations));
}

std::vector<std::string> GenerationsAt(const std::vector<Activation>& activations,
                                       WallTime started_time, Duration before) {
  constexpr Duration kApiResolution(1000);
  std::vector<std::string> candidates;
  for (auto it = activations.rbegin(); it != activations.rend(); ++it) {
    if (it->at > started_time + kApiResolution) {
      continue;
    }
    if (std::find(candidates.begin(), candidates.end(), it->generation) == candidates.end()) {
      candidates.push_back(it->generation);
    }
    if (it->at <= started_time - before) {
      break;
    }
  }
  // The container started before the oldest record, so the oldest recorded tree is the best guess.
  if (candidates.empty() && !activations.empty()) {
    candidates.push_back(activations.front().generation);
  }
  return candidates;
}

absl::Status WriteCaptureRecord(const fs::Dir& root, const api::CaptureStatus& capture) {
  return WriteRecord(root, CaptureRecordPath(capture.id),
                     {{"id", capture.id},
                      {"state", api::Name(capture.state)},
                      {"digest", capture.digest.ToString()},
                      {"bytes", capture.bytes},
                      {"files", capture.files},
                      {"native", capture.native},
                      {"compileSeconds", capture.compile_seconds},
                      {"leftFiles", capture.left_behind.files},
                      {"leftBytes", capture.left_behind.bytes},
                      {"leftDirectories", capture.left_behind.directories},
                      {"reason", capture.reason},
                      {"message", capture.message}});
}

std::vector<api::CaptureStatus> ReadCaptureRecords(const fs::Dir& root) {
  std::vector<api::CaptureStatus> captures;
  std::vector<std::string> paths;
  const absl::Status walked = fs::Walk(root, kCaptureRecords, {}, [&](const fs::WalkEntry& entry) {
    if (entry.stat.type == fs::FileType::kFile && entry.path.ends_with(".json")) {
      paths.push_back(fmt::format("{}/{}", kCaptureRecords, entry.path));
    }
    return entry.stat.type == fs::FileType::kDirectory ? fs::WalkNext::kSkipDirectory
                                                       : fs::WalkNext::kContinue;
  });
  if (!walked.ok()) {
    return {};
  }
  for (const std::string& path : paths) {
    const absl::StatusOr<Json> object = ReadRecord(root, path, kRecordBytesMax);
    if (!object.ok()) {
      continue;
    }
    if (absl::StatusOr<api::CaptureStatus> capture = DecodeCapture(*object); capture.ok()) {
      captures.push_back(*std::move(capture));
    }
  }
  return captures;
}

absl::Status RemoveCaptureRecord(const fs::Dir& root, const std::string& id) {
  return root.Remove(CaptureRecordPath(id));
}

}  // namespace cachewarm::agent
