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

// One connection: reads a request, calls its handler, writes the answer, and again. All of it runs
// on the strand of its socket. Keeps itself alive while something is under way.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;

  virtual void Run() = 0;
  // From any thread: ends it now when it is idle, else after the answer under way.
  virtual void Close() = 0;
};

// What all connections of a server share; outlives them.
struct SessionMeans {
  const ServerOptions& options;
  const std::map<std::string, Handler>& routes;
  const std::atomic<bool>& draining;  // answers end their connections
};

std::unique_ptr<Session> MakePlainSession(boost::asio::ip::tcp::socket socket,
                                          const SessionMeans& means);
std::unique_ptr<Session> MakeTlsSession(boost::asio::ip::tcp::socket socket,
                                        std::shared_ptr<boost::asio::ssl::context> context,
                                        const SessionMeans& means);

}  // namespace cachewarm::http
