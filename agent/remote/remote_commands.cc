// SPDX-License-Identifier: Apache-2.0
// Keys: torch/_inductor/remote_cache.py writes "pt2:<cache>::<key>:c1", in which <cache> is a hash
// for autotune results; triton/runtime/cache.py writes "triton:<key>:<file>".
#include "agent/remote/remote_commands.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "fmt/format.h"

namespace cachewarm::agent {
namespace {

constexpr size_t kQuotedBytes = 64;
constexpr std::string_view kServerVersion = "7.0.0";

std::vector<ReplyPart> Text(std::string text) {
  std::vector<ReplyPart> reply;
  reply.push_back({.text = std::move(text), .file = {}});
  return reply;
}

std::string UpperCase(const resp::Argument& argument) {
  std::string word = argument.bytes.substr(0, kQuotedBytes);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return word;
}

std::string WrongCount(std::string_view command) {
  return resp::Error(fmt::format("ERR wrong number of arguments for '{}' command", command));
}

std::string Unsupported(std::string_view what) {
  return resp::Error(fmt::format("ERR {} is not supported by the endpoint of cachewarm", what));
}

}  // namespace

std::string RemoteCacheOf(std::string_view key) {
  if (key.starts_with("triton:")) {
    return "triton";
  }
  if (!key.starts_with("pt2:")) {
    return "other";
  }
  const std::string_view cache = key.substr(4, key.find("::") - 4);
  if (cache.starts_with("fx-graph")) {
    return "fx_graph";
  }
  return cache.starts_with("autograd") ? "autograd" : "autotune";
}

std::vector<ReplyPart> RemoteCommands::Execute(const Request& request) {
  const std::string command = UpperCase(request.front());
  if (command == "GET") {
    return Get(request);
  }
  if (command == "MGET") {
    return MultiGet(request);
  }
  if (command == "SET") {
    return Text(Set(request));
  }
  if (command == "EXISTS") {
    return Text(Exists(request));
  }
  if (command == "HELLO") {
    return Text(Hello(request));
  }
  if (command == "CLIENT") {
    return Text(Client(request));
  }
  if (command == "PING") {
    return Text(request.size() > 1 ? resp::BulkString(request[1].bytes)
                                   : resp::SimpleString("PONG"));
  }
  if (command == "ECHO") {
    return Text(request.size() == 2 ? resp::BulkString(request[1].bytes) : WrongCount("echo"));
  }
  if (command == "SELECT") {
    return Text(request.size() == 2 && request[1].bytes == "0"
                    ? resp::SimpleString("OK")
                    : resp::Error("ERR DB index is out of range: there is only database 0"));
  }
  if (command == "QUIT") {
    has_quit_ = true;
    return Text(resp::SimpleString("OK"));
  }
  return Text(Unsupported(fmt::format("command '{}'", command)));
}

void RemoteCommands::AppendValue(const resp::Argument& key, std::vector<ReplyPart>& reply) {
  absl::StatusOr<RemoteEntry> found = key.dropped
                                          ? absl::NotFoundError("the key is larger than the limit")
                                          : entries_.Find(key.bytes);
  const std::string cache = RemoteCacheOf(key.bytes);
  metrics_.redis_requests.Add({cache, found.ok() ? "hit" : "miss"});
  if (!found.ok()) {
    reply.push_back({.text = resp::Null(version_), .file = {}});
    return;
  }
  metrics_.redis_compile_seconds.Add({cache}, static_cast<double>(found->compile_ms) / 1000);
  const int64_t bytes = found->bytes;
  reply.push_back({.text = resp::BulkHeader(static_cast<size_t>(bytes)),
                   .file = std::move(found->file),
                   .file_bytes = bytes});
  reply.push_back({.text = std::string(resp::BulkEnd()), .file = {}});
}

std::vector<ReplyPart> RemoteCommands::Get(const Request& request) {
  if (request.size() != 2) {
    return Text(WrongCount("get"));
  }
  std::vector<ReplyPart> reply;
  AppendValue(request[1], reply);
  return reply;
}

std::vector<ReplyPart> RemoteCommands::MultiGet(const Request& request) {
  if (request.size() < 2) {
    return Text(WrongCount("mget"));
  }
  std::vector<ReplyPart> reply = Text(resp::ArrayHeader(request.size() - 1));
  for (size_t i = 1; i < request.size(); ++i) {
    AppendValue(request[i], reply);
  }
  return reply;
}

bool RemoteCommands::StoreValue(const resp::Argument& key, const resp::Argument& value) {
  if (key.dropped) {
    return false;
  }
  if (value.dropped) {
    entries_.Remove(key.bytes);
    return false;
  }
  return entries_.Store(key.bytes, value.bytes).ok();
}

// Ignores a time to live (EX, PX, EXAT, PXAT, KEEPTTL): an entry stays as long as its tree.
std::string RemoteCommands::Set(const Request& request) {
  if (request.size() < 3) {
    return WrongCount("set");
  }
  for (size_t i = 3; i < request.size(); ++i) {
    const std::string option = UpperCase(request[i]);
    if (option == "EX" || option == "PX" || option == "EXAT" || option == "PXAT") {
      ++i;
    } else if (option != "KEEPTTL") {
      return Unsupported(fmt::format("option '{}' of SET", option));
    }
  }
  const bool stored = StoreValue(request[1], request[2]);
  metrics_.redis_requests.Add({RemoteCacheOf(request[1].bytes), stored ? "stored" : "dropped"});
  return resp::SimpleString("OK");
}

std::string RemoteCommands::Exists(const Request& request) const {
  if (request.size() < 2) {
    return WrongCount("exists");
  }
  return resp::Integer(std::count_if(
      request.begin() + 1, request.end(),
      [this](const resp::Argument& key) { return !key.dropped && entries_.Contains(key.bytes); }));
}

std::string RemoteCommands::Hello(const Request& request) {
  if (request.size() > 1) {
    const std::string& version = request[1].bytes;
    if (version != "2" && version != "3") {
      return resp::Error("NOPROTO unsupported protocol version: use 2 or 3");
    }
    version_ = version == "3" ? resp::Version::kResp3 : resp::Version::kResp2;
  }
  for (size_t i = 2; i < request.size(); ++i) {
    if (UpperCase(request[i]) == "AUTH") {
      return resp::Error(
          "ERR the endpoint of cachewarm has no users: remove the password from the "
          "URL");
    }
  }
  std::string reply = resp::MapHeader(4, version_);
  reply += resp::BulkString("server") + resp::BulkString("redis");
  reply += resp::BulkString("version") + resp::BulkString(kServerVersion);
  reply += resp::BulkString("proto") + resp::Integer(version_ == resp::Version::kResp3 ? 3 : 2);
  reply += resp::BulkString("role") + resp::BulkString("master");
  return reply;
}

// Accepts SETINFO (with which redis-py reports its name and version) and SETNAME. Other subcommands
// get an error reply, which redis-py ignores.
std::string RemoteCommands::Client(const Request& request) const {
  const std::string subcommand = request.size() > 1 ? UpperCase(request[1]) : "";
  return subcommand == "SETINFO" || subcommand == "SETNAME"
             ? resp::SimpleString("OK")
             : Unsupported(fmt::format("subcommand '{}' of CLIENT", subcommand));
}

}  // namespace cachewarm::agent
