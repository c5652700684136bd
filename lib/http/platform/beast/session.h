// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "lib/http/server.h"

namespace cachewarm::http {

// One connection: reads a request, calls its handler, writes the answer, and again. All of it runs
// on the strand of its stream. Keeps itself alive while something is under way.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(boost::asio::ip::tcp::socket socket, const ServerOptions& options,
          const std::map<std::string, Handler>& routes)
      : stream_(std::move(socket)), options_(options), routes_(routes) {}

  void Run();
  // From any thread: ends it now when it is idle, else after the answer under way.
  void Close();

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using Answer = boost::beast::http::response<boost::beast::http::string_body>;

  void AwaitRequest();
  void ReadRequest();
  void OnRequest(boost::beast::error_code error);
  void Refuse(boost::beast::http::status status);
  ServerResponse Handle(const Parser::value_type& request) const;
  void Write(const ServerResponse& response, bool is_head, bool keep_alive);
  void End();

  boost::beast::tcp_stream stream_;
  const ServerOptions& options_;
  const std::map<std::string, Handler>& routes_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  Answer answer_;
  bool idle_ = true;
  bool closing_ = false;
};

}  // namespace cachewarm::http
