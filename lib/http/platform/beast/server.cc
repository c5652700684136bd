// SPDX-License-Identifier: Apache-2.0
#include "lib/http/server.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/http/platform/beast/identity.h"
#include "lib/http/platform/beast/session.h"

namespace cachewarm::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::chrono::seconds kResponseGrace{1};

class BeastServer final : public Server {
 public:
  BeastServer(ServerOptions options, std::map<std::string, Handler> routes)
      : options_(std::move(options)),
        routes_(std::move(routes)),
        acceptor_(asio::make_strand(io_)),
        again_(acceptor_.get_executor()) {}

  ~BeastServer() override { Stop(); }

  absl::Status Start() {
    boost::system::error_code error;
    const asio::ip::address address = asio::ip::make_address(options_.address, error);
    if (error) {
      return absl::InvalidArgumentError(
          fmt::format("address: \"{}\" is not an IP address", options_.address));
    }
    const tcp::endpoint endpoint(address, options_.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) {
      acceptor_.set_option(asio::socket_base::reuse_address(true), error);
      acceptor_.bind(endpoint, error);
    }
    if (!error) {
      acceptor_.listen(asio::socket_base::max_listen_connections, error);
    }
    if (error) {
      return absl::UnavailableError(fmt::format("cannot listen on {}:{}: {}", options_.address,
                                                options_.port, error.message()));
    }
    port_ = acceptor_.local_endpoint().port();
    Accept();
    for (int i = 0; i < std::max(1, options_.threads); ++i) {
      threads_.emplace_back([this] { Serve(); });
    }
    return absl::OkStatus();
  }

  uint16_t port() const override { return port_; }

  void Drain() override { draining_ = true; }

  void Stop() override {
    std::lock_guard stop_lock(stop_mutex_);
    if (threads_.empty()) {
      return;
    }
    asio::post(acceptor_.get_executor(), [this] {
      boost::system::error_code ignored;
      acceptor_.close(ignored);
      again_.cancel();
    });
    for (const auto& session : StopAccepting()) {
      session->Close();
    }
    {
      std::unique_lock lock(live_mutex_);
      ended_.wait_for(lock, kResponseGrace, [this] { return live_ == 0; });
    }
    io_.stop();
    threads_.clear();  // joins the threads
    boost::system::error_code ignored;
    acceptor_.close(ignored);  // in case the handler posted above did not run
  }

 private:
  // Runs the event loop. An exception that a library throws ends the connection, not the process.
  void Serve() {
    for (;;) {
      try {
        io_.run();
        return;
      } catch (const std::exception&) {
        continue;
      }
    }
  }

  std::vector<std::shared_ptr<Session>> StopAccepting() {
    std::lock_guard lock(sessions_mutex_);
    stopping_ = true;
    std::vector<std::shared_ptr<Session>> live;
    for (const std::weak_ptr<Session>& weak : sessions_) {
      if (std::shared_ptr<Session> session = weak.lock(); session != nullptr) {
        live.push_back(std::move(session));
      }
    }
    return live;
  }

  void Accept() {
    acceptor_.async_accept(asio::make_strand(io_),
                           [this](boost::system::error_code error, tcp::socket socket) {
                             if (!acceptor_.is_open()) {
                               return;
                             }
                             if (error) {
                               return AcceptLater();
                             }
                             Accept();  // first: a failure of Admit() must not stop accepting
                             Admit(std::move(socket));
                           });
  }

  // Accepts the next connection after a pause: without free file descriptors an immediate retry
  // would only burn CPU.
  void AcceptLater() {
    again_.expires_after(std::chrono::milliseconds(100));
    again_.async_wait([this](boost::system::error_code error) {
      if (!error && acceptor_.is_open()) {
        Accept();
      }
    });
  }

  void Admit(tcp::socket socket) {
    std::lock_guard lock(sessions_mutex_);
    std::erase_if(sessions_, [](const auto& session) { return session.expired(); });
    if (stopping_ || sessions_.size() >= static_cast<size_t>(options_.connections_max)) {
      return;  // the destructor closes the socket
    }
    std::unique_ptr<Session> made = MakeSession(std::move(socket));
    if (made == nullptr) {
      return;
    }
    {
      std::lock_guard live_lock(live_mutex_);
      ++live_;
    }
    // The deleter reports to Stop() that a session ended.
    std::shared_ptr<Session> session(made.release(), [this](Session* ended) {
      delete ended;
      std::lock_guard live_lock(live_mutex_);
      --live_;
      ended_.notify_all();
    });
    sessions_.push_back(session);
    session->Run();
  }

  // Returns null if the server uses TLS and has no certificate yet.
  std::unique_ptr<Session> MakeSession(tcp::socket socket) {
    const SessionDependencies dependencies{
        .options = options_, .routes = routes_, .draining = draining_};
    if (options_.identity == nullptr) {
      return MakePlainSession(std::move(socket), dependencies);
    }
    auto context = options_.identity->state().Current();
    return context == nullptr ? nullptr
                              : MakeTlsSession(std::move(socket), std::move(context), dependencies);
  }

  const ServerOptions options_;
  const std::map<std::string, Handler> routes_;
  std::atomic<bool> draining_ = false;
  // Declared before io_: destroying io_ may end sessions, whose deleter uses these members.
  std::mutex live_mutex_;
  std::condition_variable ended_;
  int live_ = 0;
  asio::io_context io_;
  tcp::acceptor acceptor_;
  asio::steady_timer again_;
  uint16_t port_ = 0;
  std::mutex stop_mutex_;
  std::mutex sessions_mutex_;
  bool stopping_ = false;
  std::vector<std::weak_ptr<Session>> sessions_;
  std::vector<std::jthread> threads_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> StartServer(const ServerOptions& options,
                                                    std::map<std::string, Handler> routes) {
  auto server = std::make_unique<BeastServer>(options, std::move(routes));
  CW_RETURN_IF_ERROR(server->Start());
  return server;
}

}  // namespace cachewarm::http
