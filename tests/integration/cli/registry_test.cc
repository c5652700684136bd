// SPDX-License-Identifier: Apache-2.0
// The program "cachewarm run" with a real registry.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/contract/store/registry_process.h"
#include "tests/integration/cli/run_fixture.h"

namespace cachewarm::cli {
namespace {

using ::testing::HasSubstr;

class RunWithRegistry : public RunTest {
 protected:
  void SetUp() override {
    if (bundle::RegistryProcess::Program().empty()) {
      GTEST_SKIP() << "CACHEWARM_REGISTRY_BIN is not set";
    }
    RunTest::SetUp();
    registry_ = std::make_unique<bundle::RegistryProcess>();
    store_ = "oci://" + registry_->address() + "/team";
  }

  std::unique_ptr<bundle::RegistryProcess> registry_;
};

TEST_F(RunWithRegistry, SecondMachineStartsWarm) {
  EXPECT_EQ(Output(Call({}, kCompile, "one")), "cold\n");
  EXPECT_EQ(Output(Call({}, kCompile, "two")), "warm\n");
}

TEST_F(RunWithRegistry, ReplicasAtOnceUniteTheirFiles) {
  constexpr int kReplicas = 6;
  std::vector<std::unique_ptr<Start>> replicas;
  for (int i = 0; i < kReplicas; ++i) {
    const std::string number = std::to_string(i);
    const std::string own = "echo > $TORCHINDUCTOR_CACHE_DIR/ab/cown" + number + ".py";
    replicas.push_back(
        std::make_unique<Start>(Call({}, std::string(kCompile) + own, "replica" + number)));
  }
  for (const auto& replica : replicas) {
    EXPECT_EQ(replica->program.Wait(), 0) << replica->program.log();
  }
  // A replica that others overtook five times publishes at its next end.
  for (int i = 0; i < kReplicas; ++i) {
    Output(Call({}, "exit 0", "replica" + std::to_string(i)));
  }
  EXPECT_EQ(Output(Call({}, "ls $TORCHINDUCTOR_CACHE_DIR/ab | wc -l", "fresh")), "7\n");
}

TEST_F(RunWithRegistry, RegistryKilledInTheMiddleDoesNotTouchTheCommand) {
  Start start(Call({"--max-wait", "4"},
                   std::string(kCompile) + "until [ -e $1/end ]; do sleep 0.01; done; exit 3"));
  ASSERT_TRUE(Await([&] { return start.program.out() == "cold\n"; }));
  registry_->Kill();
  temp_.Write("end", "");
  EXPECT_EQ(start.program.Wait(), 3);
  EXPECT_THAT(start.program.log(), HasSubstr("nothing published"));
  registry_->Start();
  EXPECT_EQ(Output(Call({}, kCompile)), "warm\n");
  EXPECT_EQ(Output(Call({}, kCompile, "other")), "warm\n");
}

}  // namespace
}  // namespace cachewarm::cli
