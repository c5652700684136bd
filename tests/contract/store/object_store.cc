// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/store/object_store.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "fmt/format.h"

namespace cachewarm::bundle {

ObjectStore::ObjectStore(ObjectStoreOptions options)
    : options_(std::move(options)),
      server_([this](fakes::RawConnection& connection, int) { Serve(connection); }) {}

std::string ObjectStore::url() const {
  return fmt::format("http://localhost:{}", server_.port());
}

std::vector<RawRequest> ObjectStore::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

void ObjectStore::Serve(fakes::RawConnection& connection) {
  for (std::string text = connection.ReadRequest(); !text.empty();
       text = connection.ReadRequest()) {
    const RawRequest request = ParseRawRequest(text);
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(request);
    }
    std::string answer = Answer(request);
    const size_t most = answer.find("\r\n\r\n") + 4 + options_.bytes_max;
    if (options_.bytes_max > 0 && answer.size() > most) {
      answer.resize(most);
      connection.Write(answer);
      return;
    }
    connection.Write(answer);
  }
}

std::string ObjectStore::Answer(const RawRequest& request) const {
  if (options_.asks_password) {
    return fakes::RawResponse(401, "", "WWW-Authenticate: Basic realm=\"objects\"\r\n");
  }
  std::ifstream file(options_.folder + request.target, std::ios::binary);
  const auto range = RangeOf(request);
  if (!file.is_open() || !range.has_value()) {
    return fakes::RawResponse(404, "");
  }
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto first = static_cast<size_t>(range->first);
  const auto last = static_cast<size_t>(range->last);
  return fakes::RawResponse(
      206, bytes.substr(first, last - first + 1),
      fmt::format("Content-Range: bytes {}-{}/{}\r\n", first, last, bytes.size()));
}

}  // namespace cachewarm::bundle
