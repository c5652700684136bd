// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "lib/kube/client/client.h"

namespace cachewarm::bench {

struct Size {
  int nodes = 5000;
  int pods = 10'000;
  int warmups = 20;  // each on every node, each with a share of the pods
};

// An API server that generates its cluster on request: it writes every page as text, with
// managedFields, and the client reads it like an HTTP response. Its watches deliver no events.
class GeneratedCluster final : public kube::Client {
 public:
  explicit GeneratedCluster(const Size& size) : size_(size) {}

  absl::StatusOr<codec::Json> Do(const kube::Request& request, std::stop_token stop) override;
  absl::StatusOr<codec::Json> DoList(const kube::Request& request, const ItemHandler& on_item,
                                     std::stop_token stop) override;
  absl::Status Watch(const kube::Request& request, const kube::WatchEventHandler& on_event,
                     std::stop_token stop) override;

 private:
  struct Kind {
    int count = 0;
    std::function<codec::Json(int)> make;
  };
  Kind KindOf(const kube::Request& request) const;
  std::string Page(const kube::Request& request) const;

  codec::Json Node(int number) const;
  codec::Json NodeCache(int number) const;
  codec::Json Pod(int number) const;
  codec::Json Warmup(int number) const;
  codec::Json Deployment(int number) const;

  Size size_;
};

}  // namespace cachewarm::bench
