// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"

// A manifest that says something about another one, such as a signature of a bundle: OCI image-spec
// 1.1 "Guidelines for Artifact Usage". Pure.
namespace cachewarm::bundle {

inline constexpr std::string_view kEmptyType = "application/vnd.oci.empty.v1+json";
inline constexpr std::string_view kEmptyConfig = "{}";

struct Artifact {
  std::string type;  // "artifactType"
  Descriptor config;
  std::vector<Descriptor> layers;
  Descriptor subject;  // what it is about
  std::map<std::string, std::string> annotations;
};

absl::StatusOr<std::string> WriteArtifact(const Artifact& artifact);

// INVALID_ARGUMENT naming the field: no subject, no artifact type (neither "artifactType" nor the
// config's media type), no layer or more than kLayersMax, another schema or media type.
absl::StatusOr<Artifact> ParseArtifact(std::string_view text);

}  // namespace cachewarm::bundle
