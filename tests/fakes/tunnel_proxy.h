// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace cachewarm::fakes {

// An HTTP proxy on loopback that answers every CONNECT with a tunnel to one port of loopback,
// for any requested name, and rejects everything else.
class TunnelProxy {
 public:
  explicit TunnelProxy(uint16_t target_port);
  ~TunnelProxy();
  TunnelProxy(const TunnelProxy&) = delete;
  TunnelProxy& operator=(const TunnelProxy&) = delete;

  std::string address() const;  // "127.0.0.1:41234"
  // The first line of every request, and the first bytes of each tunnel.
  std::vector<std::string> asked() const;
  std::vector<std::string> first_bytes() const;

 private:
  void Accept();
  void Serve(int client);
  void Pump(int client, int target);

  const uint16_t target_port_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::vector<std::string> asked_;
  std::vector<std::string> first_bytes_;
  std::vector<std::jthread> serving_;
  std::jthread acceptor_;
};

}  // namespace cachewarm::fakes
