// SPDX-License-Identifier: Apache-2.0
// Compares tests/golden/api/*.json with full objects from the encoders. tests/e2e/crds applies the
// same files to a real API server. UPDATE_GOLDEN=1 writes the files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/source_dir.h"
#include "tests/unit/lib/api/samples.h"

namespace cachewarm::api {
namespace {

using codec::Json;

Json Object(const std::string& kind, const std::string& name, Json spec, Json status) {
  return {{"apiVersion", std::string(kApiVersion)},
          {"kind", kind},
          {"metadata", {{"name", name}}},
          {"spec", std::move(spec)},
          {"status", std::move(status)}};
}

void ExpectGolden(const std::string& file, const Json& object) {
  const std::string path = fakes::SourceDir() + "/tests/golden/api/" + file;
  const std::string text = object.dump(2) + "\n";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
  }
  std::ifstream in(path);
  std::stringstream golden;
  golden << in.rdbuf();
  EXPECT_EQ(text, golden.str()) << "UPDATE_GOLDEN=1 updates " << path;
}

TEST(Golden, CacheWarmupEncodesAsInTheFile) {
  WarmupSpec spec = FullWarmupSpec();
  spec.workload_ref.reset();  // excludes template and selector
  ExpectGolden("cachewarmup.json",
               Object("CacheWarmup", "llama", EncodeSpec(spec), EncodeStatus(FullWarmupStatus())));
}

TEST(Golden, NodeCacheEncodesAsInTheFile) {
  ExpectGolden("nodecache.json", Object("NodeCache", "golden-node", EncodeSpec(FullNodeCacheSpec()),
                                        EncodeStatus(FullNodeCacheStatus())));
}

}  // namespace
}  // namespace cachewarm::api
