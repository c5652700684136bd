// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"

// Reads and writes manifests that refer to another manifest, such as the signature of a bundle (OCI
// image-spec 1.1 "Guidelines for Artifact Usage"). Pure.
namespace cachewarm::bundle {

inline constexpr std::string_view kEmptyType = "application/vnd.oci.empty.v1+json";
inline constexpr std::string_view kEmptyConfig = "{}";

struct Artifact {
  std::string type;  // "artifactType"
  Descriptor config;
  std::vector<Descriptor> layers;
  Descriptor subject;  // the manifest to which this artifact refers
  std::map<std::string, std::string> annotations;
};

absl::StatusOr<std::string> WriteArtifact(const Artifact& artifact);

// Parses a manifest that refers to another one. Artifact::type is the field "artifactType", or the
// config's media type if that field is missing. INVALID_ARGUMENT, naming the field, if the text is
// not an OCI image manifest, lacks a subject or has more than kLayersMax layers.
absl::StatusOr<Artifact> ParseArtifact(std::string_view text);

}  // namespace cachewarm::bundle
