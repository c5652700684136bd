// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/referrers/artifact.h"

#include <utility>

#include "lib/base/status.h"
#include "lib/bundle/referrers/descriptor.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"

namespace cachewarm::bundle {
namespace {

using codec::Json;
using codec::Reader;

constexpr int kSchemaVersion = 2;

}  // namespace

absl::StatusOr<std::string> WriteArtifact(const Artifact& artifact) {
  Json layers = Json::array();
  for (const Descriptor& layer : artifact.layers) {
    layers.push_back(DescriptorJson(layer));
  }
  Json json = {{"schemaVersion", kSchemaVersion}, {"mediaType", kManifestType},
               {"artifactType", artifact.type},   {"config", DescriptorJson(artifact.config)},
               {"layers", std::move(layers)},     {"subject", DescriptorJson(artifact.subject)}};
  if (!artifact.annotations.empty()) {
    json["annotations"] = artifact.annotations;
  }
  return codec::CanonicalJson(json);
}

absl::StatusOr<Artifact> ParseArtifact(std::string_view text) {
  CW_ASSIGN_OR_RETURN(const Json json, codec::ParseJson(text, kManifestLimits));
  Artifact artifact;
  Reader reader(json, "");
  int schema = 0;
  std::string media_type;
  reader.Require("schemaVersion").Read("schemaVersion", schema, kSchemaVersion, kSchemaVersion);
  reader.Read("mediaType", media_type).Read("artifactType", artifact.type);
  reader.Require("config").Object("config",
                                  [&](Reader& config) { ReadDescriptor(config, artifact.config); });
  reader.Require("layers").List("layers", kLayersMax, [&](Reader& layer) {
    ReadDescriptor(layer, artifact.layers.emplace_back());
  });
  reader.Require("subject").Object(
      "subject", [&](Reader& subject) { ReadDescriptor(subject, artifact.subject); });
  reader.Read("annotations", artifact.annotations);
  if (reader.status().ok() && media_type != kManifestType) {
    reader.Fail("mediaType", "is not that of an image manifest");
  }
  if (artifact.type.empty()) {
    artifact.type = artifact.config.media_type;
  }
  CW_RETURN_IF_ERROR(Annotate(reader.status(), "artifact manifest"));
  return artifact;
}

}  // namespace cachewarm::bundle
