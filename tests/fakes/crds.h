// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/source_dir.h"

// The CustomResourceDefinitions in crds/, without which the operator does not become ready.
namespace cachewarm::fakes {

inline constexpr const char* kWarmupCrdName = "cachewarmups.cachewarm.io";

// Returns the CustomResourceDefinition in crds/<file>.
inline codec::Json ReadCrd(const std::string& file) {
  std::ifstream in(SourceDir() + "/crds/" + file);
  std::stringstream text;
  text << in.rdbuf();
  auto crd = codec::ParseYaml(text.str());
  if (!crd.ok()) {
    throw std::runtime_error(file + ": " + crd.status().ToString());
  }
  return *std::move(crd);
}

// Stores both as in an installation of this release; replaces older ones.
inline void PutCrds(FakeApiServer& server) {
  for (const char* file : {"cachewarmups.yaml", "nodecaches.yaml"}) {
    server.Put(kube::kCustomResourceDefinitions, ReadCrd(file));
  }
}

// Removes the field status.starts from the stored CRD of CacheWarmups.
inline void MakeWarmupCrdOlder(FakeApiServer& server) {
  server.Edit(kube::kCustomResourceDefinitions, {"", kWarmupCrdName}, [](codec::Json& crd) {
    codec::Json& schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["status"]["properties"].erase("starts");
  });
}

}  // namespace cachewarm::fakes
