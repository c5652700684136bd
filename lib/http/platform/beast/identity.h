// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <mutex>

#include "lib/http/server_identity.h"

namespace cachewarm::http {

struct ServerIdentity::State {
  // Returns the context for new connections; null until Use() succeeded.
  std::shared_ptr<boost::asio::ssl::context> Current() {
    std::lock_guard lock(mutex);
    return context;
  }

  std::mutex mutex;
  std::shared_ptr<boost::asio::ssl::context> context;
};

}  // namespace cachewarm::http
