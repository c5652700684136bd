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
// Each test has a namespace of its own, and uses only kinds that no installation of ours guards.
class KubeContract : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  void TearDown() override;

  bool is_fake() const { return GetParam() == "fake"; }
  Client& client() { return *client_; }

  // A request that has to succeed, or has to fail.
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

// What to instantiate the suites of a file with.
std::vector<std::string> Backends();

}  // namespace cachewarm::kube
