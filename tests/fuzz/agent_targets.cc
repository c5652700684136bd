// SPDX-License-Identifier: Apache-2.0
// Targets of the agent: a client of the Redis endpoint, and the journal on a damaged disk.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/remote/remote_commands.h"
#include "agent/sync/tree_names.h"
#include "agent/tree/journal.h"
#include "agent/tree/record_file.h"
#include "agent/tree/root_layout.h"
#include "lib/fs/file.h"
#include "lib/metrics/metrics.h"
#include "lib/resp/reply.h"
#include "lib/resp/request_reader.h"
#include "tests/fakes/temp_dir.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {
namespace {

constexpr char kTree[] = ".gen/tree-1";
constexpr int kReplyDepthMax = 3;

// Removes one reply from the front of `text`. Aborts if `text` does not begin with one.
void TakeReply(std::string_view& text, int depth = 0) {
  const size_t end = text.find("\r\n");
  Require(end != std::string_view::npos && end > 0, "a reply begins with a line");
  const std::string_view line = text.substr(0, end);
  Require(line.find_first_of("\r\n") == std::string_view::npos, "a line has no other line end");
  text.remove_prefix(end + 2);
  int64_t number = 0;
  const std::string_view digits = line.substr(1);
  const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_number = error == std::errc() && last == digits.data() + digits.size();
  switch (line.front()) {
    case '+':
    case '-':
      return;
    case '_':
      Require(digits.empty(), "a null has no value");
      return;
    case ':':
      Require(is_number, "an integer is a number");
      return;
    case '$':
      Require(is_number && number >= -1, "a bulk string has a size");
      if (number >= 0) {
        const auto size = static_cast<size_t>(number);
        Require(text.size() >= size + 2 && text.substr(size, 2) == "\r\n",
                "a bulk string has the announced size");
        text.remove_prefix(size + 2);
      }
      return;
    case '*':
    case '%':
      Require(is_number && number >= 0 && depth < kReplyDepthMax, "a list has a size");
      for (int64_t i = 0; i < (line.front() == '%' ? 2 * number : number); ++i) {
        TakeReply(text, depth + 1);
      }
      return;
    default:
      Require(false, "a reply has a known type");
  }
}

// The endpoint of one tree for one client. The limits are small, so that a short input exceeds
// them.
class RedisClient {
 public:
  RedisClient(const fs::Dir& root, agent::Metrics& metrics)
      : entries_(*agent::RemoteEntries::Open(
            root, kTree,
            {.value_bytes_max = 32, .entries_max = 2, .bytes_max = 48, .free_bytes_min = 0})),
        commands_(entries_, metrics) {}

  std::string Run(const std::vector<resp::Argument>& request) {
    std::string reply;
    for (const agent::ReplyPart& part : commands_.Execute(request)) {
      reply += part.text;
      if (part.file.ok()) {
        const auto bytes = fs::ReadAll(part.file, part.file_bytes);
        Require(bytes.ok(), "a value can be read");
        reply += *bytes;
      }
    }
    return reply;
  }

  void RunAndCheck(const std::vector<resp::Argument>& request) {
    const std::string reply = Run(request);
    std::string_view rest = reply;
    TakeReply(rest);
    Require(rest.empty(), "a request has one reply");
    std::string command = request.front().bytes;
    std::transform(command.begin(), command.end(), command.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (command != "SET" || reply != "+OK\r\n" || request[1].dropped) {
      return;
    }
    const std::string found = Run({{.bytes = "GET"}, request[1]});
    const bool is_absent = found == "$-1\r\n" || found == "_\r\n";
    Require(is_absent || (!request[2].dropped && found == resp::BulkString(request[2].bytes)),
            "after SET, the value is the new one or absent");
  }

 private:
  agent::RemoteEntries entries_;
  agent::RemoteCommands commands_;
};

// Everything that the targets of this file keep from one input to the next.
struct AgentRoot {
  AgentRoot() {
    for (const std::string_view path :
         {std::string_view(kTree), agent::kGenerationRecords, agent::kLinkRecords,
          agent::kCaptureRecords, agent::kQuarantineRecords, agent::kDamagedRecords}) {
      Require(root.MakeDirs(path, 0700).ok(), "a directory can be made");
    }
  }

  // Writes the file `path`, and reads, writes and reads it again. `read` returns a value that
  // compares equal if nothing was lost, and nullopt for a record that was rejected.
  template <class Read, class Write>
  void Reread(const std::string& path, std::string_view bytes, const Read& read,
              const Write& write) {
    Require(fs::WriteFileAtomic(root, path, bytes, agent::kRecordMode, fs::Durable::kOnceAllSynced)
                .ok(),
            "a file can be written");
    if (const auto record = read(); record.has_value()) {
      Require(write(*record).ok(), "a record that was read can be written");
      const auto again = read();
      Require(again.has_value() && *again == *record, "a written record reads the same");
    }
  }

  TempDir folder;
  fs::Dir root = folder.Open();
  std::unique_ptr<metrics::Registry> registry = metrics::MakeRegistry();
  agent::Metrics counters{*registry, "test"};
};

AgentRoot& Root() {
  static AgentRoot root;
  return root;
}

template <class T>
std::optional<T> ToOptional(absl::StatusOr<T> value) {
  return value.ok() ? std::optional<T>(*std::move(value)) : std::nullopt;
}

template <class T>
std::optional<T> FirstOf(std::vector<T> values) {
  return values.empty() ? std::nullopt : std::optional<T>(std::move(values.front()));
}

constexpr char kId[] = "00000000000000000000000000000000";

void ReadTreeRecords(AgentRoot& at, int kind, std::string_view bytes) {
  if (kind == 0) {
    at.Reread(
        agent::GenerationRecordPath(kId), bytes,
        [&] { return ToOptional(agent::ReadGenerationRecord(at.root, kId)); },
        [&](const agent::GenerationRecord& record) {
          return agent::WriteGenerationRecord(at.root, record, {}, fs::Durable::kOnceAllSynced);
        });
  } else if (kind == 1) {
    at.Reread(
        agent::EntriesRecordPath(kId), bytes,
        [&] { return ToOptional(agent::ReadEntryRecords(at.root, kId)); },
        [&](const std::vector<agent::EntryRecord>& entries) {
          return agent::WriteEntryRecords(at.root, kId, entries, fs::Durable::kOnceAllSynced);
        });
  } else {
    at.Reread(
        agent::ScrubRecordPath(kId), bytes,
        [&] { return ToOptional(agent::ReadScrubRecord(at.root, kId)); },
        [&](const agent::ScrubRecord& record) {
          return agent::WriteScrubRecord(at.root, kId, record);
        });
  }
}

void ReadResults(AgentRoot& at, int kind, std::string_view bytes) {
  const agent::BundleName name{.warmup_uid = "u", .digest = DigestOf("bundle")};
  if (kind == 3) {
    at.Reread(
        agent::CaptureRecordPath("c"), bytes,
        [&] { return FirstOf(agent::ReadCaptureRecords(at.root)); },
        [&](const api::CaptureStatus& capture) {
          Require(at.root.Remove(agent::CaptureRecordPath("c")).ok(), "a record can be removed");
          return agent::WriteCaptureRecord(at.root, capture);
        });
    for (const api::CaptureStatus& capture : agent::ReadCaptureRecords(at.root)) {
      Require(agent::RemoveCaptureRecord(at.root, capture.id).ok(), "a record can be removed");
    }
  } else if (kind == 4) {
    at.Reread(
        agent::QuarantinedBundlePath(name.warmup_uid, name.digest), bytes,
        [&] { return FirstOf(agent::ReadQuarantinedBundles(at.root)); },
        [&](const agent::QuarantinedBundle& bundle) {
          Require(bundle.name == name, "a record is read only under its name");
          return agent::WriteQuarantinedBundle(at.root, bundle);
        });
  } else {
    at.Reread(
        agent::DamagedTreePath(kId), bytes,
        [&] { return ToOptional(agent::ReadDamagedTrees(at.root)); },
        [&](const std::map<std::string, agent::DamagedTree>& trees) {
          Require(trees.size() == 1, "a tree with an unreadable record is damaged");
          return agent::WriteDamagedTree(at.root, kId, trees.begin()->second);
        });
  }
}

void ReadHistory(AgentRoot& at, std::string_view bytes) {
  const agent::Mount mount{.ns = "team", .name = "llama", .uid = "u", .run_as = "u1000"};
  Require(fs::WriteFileAtomic(at.root, agent::LinkRecordPath(mount), bytes, agent::kRecordMode,
                              fs::Durable::kOnceAllSynced)
              .ok(),
          "a file can be written");
  const WallTime now{Duration(1'790'000'000'000)};
  for (const agent::Activation& each : agent::ReadActivations(at.root, mount)) {
    Require(agent::IsGenerationId(each.generation), "an activation names a tree");
  }
  Require(agent::ReadHistories(at.root).size() == 1, "each record is a history");
  Require(agent::RepairActivations(at.root, mount, kId, now).ok(), "a history can be repaired");
  const auto repaired = agent::ReadActivations(at.root, mount);
  Require(!repaired.empty() && repaired.back().generation == kId, "a repaired history is current");
  Require(!agent::GenerationsAt(repaired, now, api::kMountedBefore).empty(),
          "a container has mounted a tree");
  Require(agent::RecordActivation(at.root, mount, {kId, now, 1}).ok(), "a tree can be activated");
  const auto longer = agent::ReadActivations(at.root, mount);
  Require(
      longer.size() <= agent::kActivationsMax && longer.back() == agent::Activation{kId, now, 1},
      "a history ends with the last activation");
}

}  // namespace

void RedisSession(std::string_view bytes) {
  AgentRoot& at = Root();
  RedisClient client(at.root, at.counters);
  resp::RequestReader reader([](size_t size) { return size <= 40; },
                             {.small_argument_bytes = 16, .argument_bytes_max = 1U << 16U});
  while (!bytes.empty()) {
    const auto read = reader.Read(bytes);
    if (!read.ok()) {
      const std::string error = resp::Error(std::string(read.status().message()));
      std::string_view rest = error;
      TakeReply(rest);
      break;
    }
    bytes.remove_prefix(*read);
    if (reader.IsComplete()) {
      client.RunAndCheck(reader.Take());
    }
  }
  std::filesystem::remove_all(at.folder /
                              (std::string(kTree) + "/" + std::string(agent::kRemoteFolder)));
}

// Input: the kind of the record (first byte), then its file.
void JournalRecord(std::string_view bytes) {
  if (bytes.empty()) {
    return;
  }
  const int kind = static_cast<unsigned char>(bytes.front()) % 7;
  bytes.remove_prefix(1);
  if (kind < 3) {
    ReadTreeRecords(Root(), kind, bytes);
  } else if (kind < 6) {
    ReadResults(Root(), kind, bytes);
  } else {
    ReadHistory(Root(), bytes);
  }
}

}  // namespace cachewarm::fuzz
