// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <map>
#include <memory>
#include <string>

#include "lib/http/server.h"

namespace cachewarm::http {

// One connection of the server: reads a request, calls its handler, writes the response, and
// repeats. Runs on the strand of its socket, and stays alive while an operation is pending.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;

  virtual void Run() = 0;
  // Closes the session: at once if it is idle, otherwise after the current response. Thread-safe.
  virtual void Close() = 0;
};

// State shared by all connections of a server; must outlive them.
struct SessionDependencies {
  const ServerOptions& options;
  const std::map<std::string, Handler>& routes;
  const std::atomic<bool>& draining;  // if true, each response closes its connection
};

std::unique_ptr<Session> MakePlainSession(boost::asio::ip::tcp::socket socket,
                                          const SessionDependencies& dependencies);
std::unique_ptr<Session> MakeTlsSession(boost::asio::ip::tcp::socket socket,
                                        std::shared_ptr<boost::asio::ssl::context> context,
                                        const SessionDependencies& dependencies);

}  // namespace cachewarm::http
