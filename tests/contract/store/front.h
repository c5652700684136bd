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

struct FrontOptions {
  std::string registry;  // "127.0.0.1:5000"
  // Which requests to the registry break off, and how. The one who sent it then finds its
  // connection closed, without an answer.
  BrokenClient::Decide decide = [](const http::Request&) { return BrokenClient::Break::kNot; };
  // So many bytes of an answer with a range, then the connection ends; 0: all of it.
  size_t range_bytes_max = 0;
};

// Stands in front of a real registry on a free loopback port and passes on what is asked: what the
// network between does to a program.
class Front {
 public:
  explicit Front(const FrontOptions& options);

  std::string address() const;  // "127.0.0.1:41234"
  // The ranges that were asked for, in order.
  std::vector<ByteRange> ranges() const;

 private:
  void Serve(fakes::RawConnection& connection);
  // False: the connection ends.
  bool Pass(const RawRequest& asked, fakes::RawConnection& connection);

  const FrontOptions options_;
  BrokenClient client_;
  mutable std::mutex mutex_;
  std::vector<ByteRange> ranges_;
  fakes::RawServer server_;
};

}  // namespace cachewarm::bundle
