// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/codec/json_value.h"

// What people write on a workload to have it warmed, and how it becomes a spec (docs/annotations.md
// has the same table; tests/unit/lib/api keeps both together).
namespace cachewarm::api {

enum class AnnotationForm {
  kText,
  kNumber,   // an integer in decimal
  kBoolean,  // true or false
  kList,     // a,b,c
  kNames,    // a,b,c as a list of objects with a name
  kLabels,   // key=value,key=value
};

// One annotation that sets one field of the spec. What the field allows is said by its own reader
// (lib/api/json/warmup_spec.cc): the bounds of both are the same.
struct SpecAnnotation {
  std::string_view name;     // with the prefix "cachewarm.io/"
  std::string_view section;  // "gate", "compile" or "", the spec itself
  std::string_view field;
  AnnotationForm form;
  std::string_view example;  // for people who got it wrong
};
std::span<const SpecAnnotation> SpecAnnotations();

// What the annotations of a workload ask for. `spec` holds only the fields that they name.
// `problems` has one sentence for each annotation of ours that is unknown or cannot be used; each
// names the annotation and what to do. After the first 8 one says how many more there are.
struct AnnotatedSpec {
  codec::Json spec = codec::Json::object();
  std::vector<std::string> problems;
};

// Looks at annotations with our prefix, except cachewarm.io/warm itself; all others are not ours.
AnnotatedSpec ReadAnnotatedSpec(const std::map<std::string, std::string>& annotations);

}  // namespace cachewarm::api
