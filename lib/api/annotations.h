// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/codec/json_value.h"

// Annotations of a workload that set fields in the spec of its CacheWarmup. docs/annotations.md
// lists the same annotations; tests/unit/lib/api compares both lists.
namespace cachewarm::api {

enum class AnnotationForm {
  kText,
  kNumber,   // an integer in decimal
  kBoolean,  // true or false
  kList,     // a,b,c
  kNames,    // a,b,c; becomes a list of objects with the field `name` in the spec
  kLabels,   // key=value,key=value
};

// One annotation that sets one field of the spec. The reader of the spec checks the value
// (lib/api/json/warmup_spec.cc), so that annotation and field have the same bounds.
struct SpecAnnotation {
  std::string_view name;     // with the prefix "cachewarm.io/"
  std::string_view section;  // "gate", "compile", or "" for the spec itself
  std::string_view field;
  AnnotationForm form;
  std::string_view example;  // for messages about an invalid value
};
std::span<const SpecAnnotation> SpecAnnotations();

// The spec that the annotations of a workload request.
struct AnnotatedSpec {
  codec::Json spec = codec::Json::object();  // only the fields that annotations set
  // One sentence per unknown or invalid annotation, with its name and the remedy. After 8 of them,
  // a last sentence says how many more there are.
  std::vector<std::string> problems;
};

// Converts the annotations with the prefix cachewarm.io/, except cachewarm.io/warm, into fields of
// the spec. Ignores all others.
AnnotatedSpec ReadAnnotatedSpec(const std::map<std::string, std::string>& annotations);

}  // namespace cachewarm::api
