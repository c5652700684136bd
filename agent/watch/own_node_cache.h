// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "lib/api/node_cache.h"
#include "lib/kube/runtime/reflector.h"

namespace cachewarm::agent {

// Watches the one NodeCache that is named after this node, and nothing else.
class OwnNodeCache {
 public:
  // Null: there is none (yet). On the watch thread; must not block.
  using Handler = std::function<void(std::shared_ptr<const api::NodeCache>)>;

  OwnNodeCache(const kube::Runtime& runtime, std::string node_name, Handler handler);

  // Until `stop`; returns within 1 s of it.
  void Run(std::stop_token stop) { reflector_.Run(std::move(stop)); }
  // True once the server has said what there is.
  bool HasSynced() const { return reflector_.store().HasSynced(); }

 private:
  void OnChange(const kube::Change& change);

  Log& log_;
  std::string node_name_;
  Handler handler_;
  kube::Reflector reflector_;
};

}  // namespace cachewarm::agent
