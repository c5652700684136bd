// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/metrics.h"
#include "agent/remote/remote_entries.h"
#include "lib/resp/reply.h"
#include "lib/resp/request_reader.h"

namespace cachewarm::agent {

// A part of a reply: `text`, then `file_bytes` bytes from the start of `file`.
struct ReplyPart {
  std::string text;
  fs::Fd file;
  int64_t file_bytes = 0;
};

// Executes the commands of one connection. Supports the commands that the remote caches of torch
// and Triton send, and those that redis-py sends when it connects: GET, MGET, SET, EXISTS, PING,
// ECHO, HELLO, CLIENT, SELECT and QUIT.
//
// A client must not fail because of this cache, and torch aborts a compile if SET gets an error
// reply. Therefore SET always succeeds; a value that cannot be stored is absent afterwards, as in a
// Redis that has evicted it. GET and MGET report a value that cannot be read as absent.
class RemoteCommands {
 public:
  // `entries` and `metrics` must outlive the object.
  RemoteCommands(RemoteEntries& entries, Metrics& metrics) : entries_(entries), metrics_(metrics) {}

  // Executes a request, which has at least one argument, and returns the reply.
  std::vector<ReplyPart> Execute(const std::vector<resp::Argument>& request);
  // Returns true after QUIT: close the connection once the reply has been sent.
  bool has_quit() const { return has_quit_; }

 private:
  using Request = std::vector<resp::Argument>;

  std::vector<ReplyPart> Get(const Request& request);
  std::vector<ReplyPart> MultiGet(const Request& request);
  std::string Set(const Request& request);
  // Returns true if the value was stored; else the key has no value afterwards.
  bool StoreValue(const resp::Argument& key, const resp::Argument& value);
  std::string Exists(const Request& request) const;
  std::string Hello(const Request& request);
  std::string Client(const Request& request) const;
  void AppendValue(const resp::Argument& key, std::vector<ReplyPart>& reply);

  RemoteEntries& entries_;
  Metrics& metrics_;
  resp::Version version_ = resp::Version::kResp2;
  bool has_quit_ = false;
};

// Returns the cache that a key belongs to, a label of the metrics: fx_graph, autograd, autotune,
// triton or other.
std::string RemoteCacheOf(std::string_view key);

}  // namespace cachewarm::agent
