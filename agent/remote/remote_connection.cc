// SPDX-License-Identifier: Apache-2.0
#include "agent/remote/remote_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include "lib/base/status.h"
#include "lib/fs/file.h"

namespace cachewarm::agent {
namespace {

constexpr size_t kReadBytes = 64U << 10U;
// Maximum number of reads in one Advance(), so that one fast client does not keep the others
// waiting.
constexpr int kReadsMax = 16;

bool WouldBlock(int error) {
  return error == EAGAIN || error == EINTR;
}

}  // namespace

RemoteConnection::RemoteConnection(fs::Fd socket, const Shared& shared, MonoTime now)
    : socket_(std::move(socket)),
      shared_(shared),
      reader_([this](size_t bytes) { return Reserve(bytes); }),
      commands_(shared.entries, shared.metrics),
      deadline_(now + shared.limits.idle) {}

RemoteConnection::~RemoteConnection() {
  ReleaseMemory();
}

short RemoteConnection::events() const {
  return reply_.empty() ? POLLIN : POLLOUT;
}

bool RemoteConnection::Reserve(size_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  if (size > shared_.limits.request_bytes_per_tree - shared_.of_tree.bytes ||
      size > shared_.limits.request_bytes_max - shared_.of_all.bytes) {
    return false;
  }
  shared_.of_tree.bytes += size;
  shared_.of_all.bytes += size;
  reserved_ += size;
  return true;
}

void RemoteConnection::ReleaseMemory() {
  shared_.of_tree.bytes -= reserved_;
  shared_.of_all.bytes -= reserved_;
  reserved_ = 0;
}

bool RemoteConnection::Advance(MonoTime now) {
  int reads = 0;
  while (true) {
    const Progress sent = Send();
    if (sent != Progress::kDone) {
      return sent == Progress::kBlocked;
    }
    if (is_failed_ || commands_.has_quit()) {
      return false;
    }
    if (parsed_ < received_.size()) {
      Parse(now);
      continue;
    }
    if (++reads > kReadsMax) {
      return true;
    }
    const Progress received = Receive();
    if (received != Progress::kDone) {
      return received == Progress::kBlocked;
    }
  }
}

RemoteConnection::Progress RemoteConnection::Receive() {
  received_.resize(kReadBytes);
  parsed_ = 0;
  const ssize_t count = ::recv(socket_.get(), received_.data(), received_.size(), 0);
  const int error = errno;
  received_.resize(count < 0 ? 0 : static_cast<size_t>(count));
  if (count < 0) {
    received_.shrink_to_fit();  // otherwise hundreds of idle clients would each keep a buffer
    return WouldBlock(error) ? Progress::kBlocked : Progress::kEnded;
  }
  return count == 0 ? Progress::kEnded : Progress::kDone;
}

void RemoteConnection::Parse(MonoTime now) {
  const bool was_idle = reader_.IsIdle();
  const absl::StatusOr<size_t> read = reader_.Read(std::string_view(received_).substr(parsed_));
  if (!read.ok()) {
    is_failed_ = true;
    reply_.push_back({.text = resp::Error("ERR " + Message(read.status())), .file = {}});
    deadline_ = now + shared_.limits.reply;
    return;
  }
  parsed_ += *read;
  if (reader_.IsComplete()) {
    std::vector<ReplyPart> reply = commands_.Execute(reader_.Take());
    std::move(reply.begin(), reply.end(), std::back_inserter(reply_));
    ReleaseMemory();
    deadline_ = now + shared_.limits.reply;
  } else if (was_idle) {
    deadline_ = now + shared_.limits.request;
  }
}

RemoteConnection::Progress RemoteConnection::Send() {
  const bool had_reply = !reply_.empty();
  while (!reply_.empty()) {
    const Progress sent = SendPart(reply_.front());
    if (sent != Progress::kDone) {
      return sent;
    }
    reply_.pop_front();
    text_sent_ = 0;
    file_sent_ = 0;
  }
  if (had_reply) {
    // deadline_ was `limits.reply` after the request. The client is idle now, so allow it
    // `limits.idle` after the request instead.
    deadline_ += shared_.limits.idle - shared_.limits.reply;
  }
  return Progress::kDone;
}

RemoteConnection::Progress RemoteConnection::SendPart(ReplyPart& part) {
  while (text_sent_ < part.text.size()) {
    const ssize_t count = ::send(socket_.get(), part.text.data() + text_sent_,
                                 part.text.size() - text_sent_, MSG_NOSIGNAL);
    if (count < 0) {
      return WouldBlock(errno) ? Progress::kBlocked : Progress::kEnded;
    }
    text_sent_ += static_cast<size_t>(count);
  }
  std::array<char, kReadBytes> buffer;
  while (file_sent_ < part.file_bytes) {
    const size_t wanted = static_cast<size_t>(
        std::min<int64_t>(part.file_bytes - file_sent_, static_cast<int64_t>(buffer.size())));
    const absl::StatusOr<size_t> read = fs::ReadAt(part.file, file_sent_, buffer.data(), wanted);
    if (!read.ok() || *read == 0) {
      // A pod truncated the file, so the announced bytes do not exist: only closing is correct.
      return Progress::kEnded;
    }
    const ssize_t count = ::send(socket_.get(), buffer.data(), *read, MSG_NOSIGNAL);
    if (count < 0) {
      return WouldBlock(errno) ? Progress::kBlocked : Progress::kEnded;
    }
    file_sent_ += count;
  }
  return Progress::kDone;
}

}  // namespace cachewarm::agent
