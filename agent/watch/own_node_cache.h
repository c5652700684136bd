// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "lib/api/node_cache.h"
#include "lib/kube/runtime/reflector.h"

namespace cachewarm::agent {

// Watches only the NodeCache with the name of this node.
class OwnNodeCache {
 public:
  // Called with each new state of the NodeCache; null while it does not exist. Runs on the watch
  // thread and must not block.
  using Handler = std::function<void(std::shared_ptr<const api::NodeCache>)>;

  OwnNodeCache(const kube::Runtime& runtime, std::string node_name, Handler handler);

  // Blocks until `stop`, and returns within 1 s of it.
  void Run(std::stop_token stop) { reflector_.Run(std::move(stop)); }
  // Returns true after the initial list.
  bool HasSynced() const { return reflector_.store().HasSynced(); }

 private:
  void OnChange(const kube::Change& change);

  Log& log_;
  std::string node_name_;
  Handler handler_;
  kube::Reflector reflector_;
};

}  // namespace cachewarm::agent
