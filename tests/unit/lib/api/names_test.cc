// SPDX-License-Identifier: Apache-2.0
#include "lib/api/names.h"

#include <gtest/gtest.h>

namespace cachewarm::api {
namespace {

TEST(Names, EveryWarmupHasItsOwnFieldManager) {
  EXPECT_EQ(WarmupManager("0b9c-11"), "cw-0b9c-11");
  EXPECT_NE(WarmupManager("a"), WarmupManager("b"));
}

TEST(Names, AnnotationNamesAWarmupOnlyIfTheNameIsValid) {
  const std::string longest(253, 'a');
  for (const std::string& name : {std::string("llama"), std::string("llama-3.1"), longest}) {
    EXPECT_EQ(WarmupNameIn(name), name);
  }
  for (const std::string& value : {std::string(), std::string("a/b"), std::string("Llama"),
                                   std::string("a b"), longest + "a"}) {
    EXPECT_EQ(WarmupNameIn(value), "") << value;
  }
}

TEST(Names, RunAsIsTheUserOrImage) {
  EXPECT_EQ(RunAsName(std::nullopt), "image");
  EXPECT_EQ(RunAsName(0), "u0");
  EXPECT_EQ(RunAsName(1000), "u1000");
}

TEST(Names, CachePathMatchesTheAdmissionPolicy) {
  EXPECT_EQ(CachePath("default", "llama", "uid-1", "u1000"), "default/llama/uid-1/u1000");
}

TEST(Names, RevisionIsTheFirstRevisionLabel) {
  struct Case {
    std::map<std::string, std::string> labels;
    std::string revision;
  };
  const Case cases[] = {
      {{}, "none"},
      {{{"app", "llama"}}, "none"},
      {{{"pod-template-hash", "a"}}, "a"},
      {{{"rollouts-pod-template-hash", "b"}}, "b"},
      {{{"controller-revision-hash", "c"}}, "c"},
      {{{"pod-template-hash", "a"}, {"rollouts-pod-template-hash", "b"}}, "a"},
      {{{"rollouts-pod-template-hash", "b"}, {"controller-revision-hash", "c"}}, "b"},
      {{{"leaderworkerset.sigs.k8s.io/template-revision-hash", "d"},
        {"controller-revision-hash", "llama-0-c"}},
       "d"},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(RevisionOf(each.labels), each.revision);
  }
}

}  // namespace
}  // namespace cachewarm::api
