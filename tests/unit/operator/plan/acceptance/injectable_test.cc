// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/acceptance/injectable.h"

#include <gtest/gtest.h>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/render/injection.h"
#include "tests/fakes/wrong_types.h"

namespace cachewarm::plan {
namespace {

using codec::Json;

Json Parse(const std::string& text) {
  return codec::ParseJson(text).value();
}

Json SpecOf() {
  return Parse(R"({"containers":[
    {"name":"proxy"},
    {"name":"server","image":"s:1","volumeMounts":[{"name":"w","mountPath":"/w"}]}],
    "volumes":[{"name":"w","emptyDir":{}}]})");
}

TEST(Injectable, ConflictNamesFieldAndRemedy) {
  EXPECT_EQ(MountConflict(SpecOf(), "/var/lib/cachewarm"), "");
  Json injected = SpecOf();
  render::AddMount(injected, {.container = "server", .host_path = "/var/lib/cachewarm/a"});
  EXPECT_EQ(MountConflict(injected, "/var/lib/cachewarm"), "")
      << "the cache volume itself is no conflict";
  EXPECT_NE(MountConflict(injected, "/srv"), "");
  Json below = SpecOf();
  below["containers"][0]["volumeMounts"] =
      Parse(R"([{"name":"w","mountPath":"/var/cache/cachewarm"}])");
  EXPECT_NE(MountConflict(below, "/var/lib/cachewarm").find("proxy"), std::string::npos);
}

TEST(Injectable, SkippedPodHasReason) {
  const auto why = [](const char* pod) {
    return WhyNotInjectable(Parse(pod), "/var/lib/cachewarm");
  };
  EXPECT_EQ(why("{}"), "");
  EXPECT_EQ(why(R"({"metadata":{"ownerReferences":[{"kind":"ReplicaSet"}]},
                    "spec":{"os":{"name":"linux"},"containers":[{"name":"c"}]}})"),
            "");
  EXPECT_NE(why(R"({"spec":{"os":{"name":"windows"}}})").find("spec.os.name"), std::string::npos);
  EXPECT_NE(why(R"({"metadata":{"ownerReferences":[{"kind":"DaemonSet"}]}})").find("DaemonSet"),
            std::string::npos);
  EXPECT_NE(why(R"({"spec":{"volumes":[{"name":"cachewarm","emptyDir":{}}]}})")
                .find("rename that volume"),
            std::string::npos);
}

}  // namespace
}  // namespace cachewarm::plan
