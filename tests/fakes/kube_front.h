// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/raw_server.h"

namespace cachewarm::fakes {

// Serves a FakeApiServer by plain HTTP on a free port of loopback, so that a program can be run
// against it. Answers of a watch are chunked; connections stay open between requests.
class KubeFront {
 public:
  // `server` must outlive it.
  explicit KubeFront(FakeApiServer& server);
  ~KubeFront();

  // The text of a kubeconfig file that leads here.
  std::string Kubeconfig() const;

 private:
  void Serve(RawConnection& connection);
  void Watch(RawConnection& connection, const kube::Request& request);

  FakeApiServer& server_;
  std::stop_source stop_;
  std::unique_ptr<RawServer> raw_;
};

}  // namespace cachewarm::fakes
