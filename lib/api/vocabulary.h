// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

// Lists the public names of cachewarm with their meanings: the source of docs/reference/reasons.md
// and docs/reference/names.md. tests/golden/reference rejects a reason in reasons.h, or a name in
// names.h, that has no row here.
namespace cachewarm::api {

// One value of a condition's, event's or metric's `reason`.
struct ReasonMeaning {
  std::string_view reason;
  std::string_view place;    // the object and field in which users see it
  std::string_view meaning;  // one sentence
};
std::span<const ReasonMeaning> ReasonMeanings();

// One annotation, label, scheduling gate, taint or condition type.
struct NameMeaning {
  std::string_view name;
  std::string_view kind;     // "annotation", "label", ...
  std::string_view object;   // the object that carries it
  std::string_view writer;   // "user", "operator", "admission", ...
  std::string_view meaning;  // one sentence
};
std::span<const NameMeaning> NameMeanings();

}  // namespace cachewarm::api
