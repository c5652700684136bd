// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace cachewarm::resp {

struct RequestLimits {
  size_t arguments_max = 64;
  // An argument of at most this size is always kept. RequestReader::Reserve decides on larger ones.
  size_t small_argument_bytes = 1024;
  // A larger argument is a protocol error, as in Redis (proto-max-bulk-len).
  size_t argument_bytes_max = 512U << 20U;
};

struct Argument {
  std::string bytes;
  // The bytes of the argument were dropped, because Reserve returned false for its size.
  bool dropped = false;
};

// Reads requests of the Redis serialization protocol
// (https://redis.io/docs/reference/protocol-spec): arrays of bulk strings, the form in which RESP2
// and RESP3 clients send every command. Inline commands, the form for people at a terminal, are a
// protocol error. The input is untrusted: the limits and Reserve bound the memory, however large
// the sizes that a client announces. Not thread-safe.
class RequestReader {
 public:
  // Called with the size of each argument above `small_argument_bytes`, before its first byte is
  // read. Returns false if the argument must not be kept; the reader then drops its bytes.
  using Reserve = std::function<bool(size_t bytes)>;

  explicit RequestReader(Reserve reserve, const RequestLimits& limits = {});

  // Reads `bytes` up to the end of the current request and returns how many bytes were read. Once
  // the request is complete, returns 0 until Take() was called. INVALID_ARGUMENT for a protocol
  // error, after which the stream cannot be read further.
  absl::StatusOr<size_t> Read(std::string_view bytes);
  bool IsComplete() const { return state_ == State::kComplete; }
  // Returns true between two requests: no byte of the next one has been read.
  bool IsIdle() const { return state_ == State::kArray && line_.empty(); }
  // Returns the complete request, which has at least one argument, and starts the next one.
  std::vector<Argument> Take();

 private:
  enum class State { kArray, kBulk, kBytes, kEnd, kComplete };

  absl::StatusOr<size_t> ReadLine(std::string_view bytes);
  absl::Status BeginArray();
  absl::Status BeginBulk();
  size_t ReadBytes(std::string_view bytes);
  absl::StatusOr<size_t> ReadEnd(std::string_view bytes);

  const Reserve reserve_;
  const RequestLimits limits_;
  State state_ = State::kArray;
  std::string line_;      // received part of a header line, or of the line end after an argument
  size_t expected_ = 0;   // arguments of the request
  size_t remaining_ = 0;  // bytes of the current argument that are still to come
  std::vector<Argument> arguments_;
};

}  // namespace cachewarm::resp
