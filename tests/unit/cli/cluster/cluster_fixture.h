// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lib/http/client.h"
#include "lib/kube/core/resource.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube_front.h"
#include "tests/unit/cli/program_fixture.h"

namespace cachewarm::cli {

// Runs command lines against an API server on loopback. The current context of the kubeconfig has
// the namespace "team"; the context "two" has the namespace "other".
class ClusterFixture : public ProgramFixture {
 protected:
  ClusterFixture() {
    http::PrepareProcess();
    clock_ = &time_;
    std::string config = front_.Kubeconfig();
    const std::string contexts = "contexts: [";
    config.insert(config.find(contexts) + contexts.size(),
                  "{name: two, context: {cluster: c, user: u, namespace: other}}, ");
    config.replace(config.find("{cluster: c, user: u}"), 21,
                   "{cluster: c, user: u, namespace: team}");
    temp_.Write("config", config);
    environment_["KUBECONFIG"] = temp_ / "config";
  }

  // Checks that the options which select a cluster and a user have an effect on `words`, whose
  // result without them is exit code `code`.
  void ExpectClusterOptions(std::vector<std::string> words, int code) {
    environment_.clear();
    EXPECT_EQ(Run(words).code, kFailed);
    words.insert(words.end(), {"--kubeconfig", temp_ / "config"});
    EXPECT_EQ(Run(words).code, code) << Run(words).err;
    for (const char* flag : {"--context", "--cluster", "--user"}) {
      std::vector<std::string> absent = words;
      absent.insert(absent.end(), {flag, "absent"});
      EXPECT_NE(Run(absent).err.find("absent"), std::string::npos) << flag;
    }
    words.insert(words.end(), {"--as-group", "auditors"});
    EXPECT_NE(Run(words).err.find("--as-group"), std::string::npos) << "a group needs a user";
    words.insert(words.end(), {"--as", "ann"});
    EXPECT_EQ(Run(words).code, code);
  }

  fakes::FakeClock time_;
  fakes::FakeApiServer server_{time_};
  fakes::KubeFront front_{server_};
};

}  // namespace cachewarm::cli
