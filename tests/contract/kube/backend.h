// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "lib/codec/json_value.h"
#include "lib/http/client.h"
#include "lib/kube/client/client.h"
#include "lib/kube/core/request.h"
#include "tests/fakes/memory_log.h"

namespace cachewarm::kube {

// Each test runs once per API server: "fake", and "real" where CACHEWARM_TEST_KUBECONFIG names one.
// Each test has its own namespace and uses only kinds that no cachewarm installation guards.
class KubeContract : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  void TearDown() override;

  bool is_fake() const { return GetParam() == "fake"; }
  Client& client() { return *client_; }

  // Sends a request that must succeed, or must fail.
  codec::Json Do(const Request& request);
  absl::Status Fails(const Request& request);

  // Metadata of an object in the namespace of this test.
  codec::Json Named(const std::string& name) const;
  ObjectName NameOf(const std::string& name) const { return {.ns = ns_, .name = name}; }
  // Objects that no controller touches: a Lease, and a Deployment without replicas.
  codec::Json Lease(const std::string& name, const std::string& holder = "someone") const;
  codec::Json Deployment(const std::string& name) const;

  std::string ns_;

 private:
  void OpenReal();

  std::unique_ptr<http::Client> http_;
  std::unique_ptr<Client> client_;
};

// The parameters of every suite: the names of the API servers to test.
std::vector<std::string> Backends();

}  // namespace cachewarm::kube
