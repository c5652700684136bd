// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "tests/contract/store/raw_request.h"
#include "tests/fakes/raw_server.h"

namespace cachewarm::bundle {

struct ObjectStoreOptions {
  std::string folder;          // served files
  size_t bytes_max = 0;        // of a response, after which the connection ends; 0: no limit
  bool asks_password = false;  // responds 401 to every request
};

// An object store to which registries redirect readers of blobs. Serves ranges of files on a free
// port of "localhost", a host name other than the registry's 127.0.0.1.
class ObjectStore {
 public:
  explicit ObjectStore(ObjectStoreOptions options);

  std::string url() const;
  std::vector<RawRequest> asked() const;

 private:
  void Serve(fakes::RawConnection& connection);
  std::string Answer(const RawRequest& request) const;

  const ObjectStoreOptions options_;
  mutable std::mutex mutex_;
  std::vector<RawRequest> asked_;
  fakes::RawServer server_;
};

}  // namespace cachewarm::bundle
