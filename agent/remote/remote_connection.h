// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "agent/remote/remote_commands.h"
#include "lib/base/clock.h"

namespace cachewarm::agent {

struct RemoteLimits {
  int connections_max = 512;
  int connections_per_tree = 128;
  // Limits of the memory for requests that are being received: of all connections together, and of
  // the connections of one tree.
  int64_t request_bytes_max = 96LL << 20U;
  int64_t request_bytes_per_tree = 32LL << 20U;
  Duration request{30'000};  // from the first to the last byte of a request
  Duration reply{60'000};    // until the client has read a reply
  // Time without a request after which the connection is closed; redis-py then connects again.
  Duration idle{600'000};
};

// Counts the memory that connections have reserved for large arguments. A connection reserves it
// before it receives such an argument.
struct RequestMemory {
  int64_t bytes = 0;
};

// One client. Executes one request at a time, and reads the next one only after the reply has been
// sent, so that pipelined requests take no memory. Not thread-safe.
class RemoteConnection {
 public:
  // `of_tree` counts the memory of the connections of this tree, `of_all` that of all connections.
  // All references must outlive the connection.
  struct Shared {
    RemoteEntries& entries;
    Metrics& metrics;
    RequestMemory& of_tree;
    RequestMemory& of_all;
    const RemoteLimits& limits;
  };

  RemoteConnection(fs::Fd socket, const Shared& shared, MonoTime now);
  RemoteConnection(const RemoteConnection&) = delete;
  RemoteConnection& operator=(const RemoteConnection&) = delete;
  ~RemoteConnection();

  int fd() const { return socket_.get(); }
  // Returns the events of poll(2) to wait for.
  short events() const;
  // Reads and writes as much as possible without waiting. Returns false if the connection ends:
  // the client closed it, violated the protocol or a limit, or has quit.
  bool Advance(MonoTime now);
  // Returns when the connection must be closed unless it makes progress.
  MonoTime deadline() const { return deadline_; }

 private:
  enum class Progress { kDone, kBlocked, kEnded };

  bool Reserve(size_t bytes);
  void ReleaseMemory();
  Progress Receive();
  void Parse(MonoTime now);
  Progress Send();
  Progress SendPart(ReplyPart& part);

  const fs::Fd socket_;
  const Shared shared_;
  resp::RequestReader reader_;
  RemoteCommands commands_;
  int64_t reserved_ = 0;
  std::string received_;
  size_t parsed_ = 0;  // bytes of received_ that the reader has read
  std::deque<ReplyPart> reply_;
  size_t text_sent_ = 0;   // text bytes of reply_.front() that were sent
  int64_t file_sent_ = 0;  // file bytes of reply_.front() that were sent
  bool is_failed_ = false;
  MonoTime deadline_;
};

}  // namespace cachewarm::agent
