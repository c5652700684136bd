// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/http/client.h"
#include "tests/contract/store/broken_client.h"
#include "tests/contract/store/raw_request.h"
#include "tests/fakes/raw_server.h"

namespace cachewarm::bundle {

struct FaultyProxyOptions {
  std::string registry;  // "127.0.0.1:5000"
  // Selects the requests that break off, and how. The client's connection is then closed without a
  // response.
  BrokenClient::Decide decide = [](const http::Request&) { return BrokenClient::Break::kNot; };
  // Bytes of a response with a range after which the connection ends; 0: no limit.
  size_t range_bytes_max = 0;
};

// Forwards requests to a real registry, from a free loopback port, and simulates network failures.
class FaultyProxy {
 public:
  explicit FaultyProxy(const FaultyProxyOptions& options);

  std::string address() const;  // "127.0.0.1:41234"
  // Returns the requested ranges in order.
  std::vector<ByteRange> ranges() const;

 private:
  void Serve(fakes::RawConnection& connection);
  // Returns false if the connection ends.
  bool Forward(const RawRequest& incoming, fakes::RawConnection& connection);

  const FaultyProxyOptions options_;
  BrokenClient client_;
  mutable std::mutex mutex_;
  std::vector<ByteRange> ranges_;
  fakes::RawServer server_;
};

}  // namespace cachewarm::bundle
