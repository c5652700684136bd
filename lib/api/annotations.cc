// SPDX-License-Identifier: Apache-2.0
#include "lib/api/annotations.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "fmt/format.h"
#include "lib/api/cache_warmup.h"
#include "lib/api/names.h"
#include "lib/base/status.h"

namespace cachewarm::api {
namespace {

using codec::Json;
using Form = AnnotationForm;

constexpr size_t kValueBytesMax = 4096;
// Larger than the limit of every list in the spec; decoding the spec checks the exact limit.
constexpr size_t kItemsMax = 64;
constexpr size_t kQuotedBytesMax = 80;
constexpr size_t kProblemsMax = 8;

constexpr std::array<SpecAnnotation, 15> kTable = {{
    {"cachewarm.io/backoff-limit", "compile", "backoffLimit", Form::kNumber, "3"},
    {"cachewarm.io/builder", "compile", "builder", Form::kText, "FirstPod"},
    {"cachewarm.io/caches", "", "caches", Form::kNames, "torchinductor,triton"},
    {"cachewarm.io/container", "", "container", Form::kText, "server"},
    {"cachewarm.io/gate", "gate", "mode", Form::kText, "Never"},
    {"cachewarm.io/gpu-types", "", "gpuTypes", Form::kList, "nvidia/h100-80gb-hbm3/sm_90"},
    {"cachewarm.io/hang-seconds", "", "hangSeconds", Form::kNumber, "300"},
    {"cachewarm.io/harvest", "", "harvest", Form::kBoolean, "true"},
    {"cachewarm.io/max-hold-seconds", "gate", "maxHoldSeconds", Form::kNumber, "60"},
    {"cachewarm.io/node-selector", "", "nodeSelector", Form::kLabels, "pool=serving"},
    {"cachewarm.io/paused", "", "paused", Form::kBoolean, "true"},
    {"cachewarm.io/pending-seconds", "compile", "pendingSeconds", Form::kNumber, "600"},
    {"cachewarm.io/retain", "", "retain", Form::kNumber, "1"},
    {"cachewarm.io/settle-seconds", "compile", "settleSeconds", Form::kNumber, "10"},
    {"cachewarm.io/timeout-seconds", "compile", "timeoutSeconds", Form::kNumber, "1800"},
}};

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return "";
  }
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Splits a list at commas. Returns nullopt for an empty item or too many items.
std::optional<std::vector<std::string>> Items(std::string_view text) {
  std::vector<std::string> items;
  while (true) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view item = Trim(text.substr(0, end));
    if (item.empty() || items.size() == kItemsMax) {
      return std::nullopt;
    }
    items.emplace_back(item);
    if (end == text.size()) {
      return items;
    }
    text.remove_prefix(end + 1);
  }
}

Json NamesOf(const std::vector<std::string>& items) {
  Json names = Json::array();
  for (const std::string& item : items) {
    names.push_back({{"name", item}});
  }
  return names;
}

std::optional<Json> LabelsOf(const std::vector<std::string>& items) {
  Json labels = Json::object();
  for (const std::string& item : items) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0) {
      return std::nullopt;
    }
    labels[std::string(Trim(item.substr(0, equals)))] = Trim(item.substr(equals + 1));
  }
  return labels;
}

std::optional<Json> Parse(Form form, std::string_view text) {
  if (form == Form::kText) {
    return Json(text);
  }
  if (form == Form::kBoolean) {
    return text == "true" || text == "false" ? std::optional<Json>(text == "true") : std::nullopt;
  }
  if (form == Form::kNumber) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional<Json>(number) : std::nullopt;
  }
  const auto items = Items(text);
  if (!items.has_value()) {
    return std::nullopt;
  }
  return form == Form::kList    ? std::optional<Json>(*items)
         : form == Form::kNames ? std::optional<Json>(NamesOf(*items))
                                : LabelsOf(*items);
}

std::string_view FormWords(Form form) {
  switch (form) {
    case Form::kText:
      return "a word";
    case Form::kNumber:
      return "a whole number";
    case Form::kBoolean:
      return "true or false";
    case Form::kList:
    case Form::kNames:
      return "words separated by commas";
    case Form::kLabels:
      return "key=value pairs separated by commas";
  }
  return "";
}

void Put(const SpecAnnotation& row, Json value, Json& spec) {
  Json& owner = row.section.empty() ? spec : spec[std::string(row.section)];
  owner[std::string(row.field)] = std::move(value);
}

// Decodes a spec that has only the field of `row`, so that annotations are checked like fields.
// Returns the problem, or "".
std::string FieldProblem(const SpecAnnotation& row, const Json& value) {
  Json object = {{"metadata", {{"name", "x"}}},
                 {"spec", {{"selector", {{"matchLabels", {{"x", "x"}}}}}}}};
  Put(row, value, object["spec"]);
  const absl::Status status = DecodeCacheWarmup(object).status();
  if (status.ok()) {
    return "";
  }
  // Drop the path from "spec.gate.mode: expected ...": the user wrote an annotation, not a field.
  const std::string words = Message(status);
  const size_t colon = words.find(": ");
  return colon == std::string::npos ? words : words.substr(colon + 2);
}

std::string InvalidValue(const SpecAnnotation& row, std::string_view value, std::string_view why) {
  const bool cut = value.size() > kQuotedBytesMax;
  return fmt::format(
      "annotation {}: \"{}{}\" is invalid: {}; set for example {}=\"{}\", or remove it", row.name,
      value.substr(0, kQuotedBytesMax), cut ? "..." : "", why, row.name, row.example);
}

const SpecAnnotation* Find(std::string_view name) {
  const auto found = std::find_if(kTable.begin(), kTable.end(),
                                  [&](const SpecAnnotation& row) { return row.name == name; });
  return found == kTable.end() ? nullptr : &*found;
}

void Read(const SpecAnnotation& row, const std::string& value, AnnotatedSpec& out) {
  const std::string_view text = Trim(value);
  if (value.size() > kValueBytesMax) {
    out.problems.push_back(
        InvalidValue(row, value, fmt::format("the value is longer than {} bytes", kValueBytesMax)));
    return;
  }
  std::optional<Json> parsed = Parse(row.form, text);
  if (!parsed.has_value() || text.empty()) {
    out.problems.push_back(
        InvalidValue(row, value, fmt::format("expected {}", FormWords(row.form))));
    return;
  }
  if (const std::string problem = FieldProblem(row, *parsed); !problem.empty()) {
    out.problems.push_back(InvalidValue(row, value, problem));
    return;
  }
  Put(row, *std::move(parsed), out.spec);
}

std::string Unknown(std::string_view name) {
  std::string known(kWarmAnnotation);
  for (const SpecAnnotation& row : kTable) {
    known += fmt::format(", {}", row.name);
  }
  return fmt::format("annotation {} is unknown: remove it, or use one of {}",
                     name.substr(0, kQuotedBytesMax), known);
}

// Keeps the first kProblemsMax problems and replaces the rest by one sentence with their number,
// because an object may have thousands of annotations (256 KiB).
void Truncate(std::vector<std::string>& problems) {
  if (problems.size() > kProblemsMax) {
    const size_t more = problems.size() - kProblemsMax;
    problems.resize(kProblemsMax);
    problems.push_back(fmt::format("{} more annotations with the prefix {}/ are unknown or invalid",
                                   more, kGroup));
  }
}

}  // namespace

std::span<const SpecAnnotation> SpecAnnotations() {
  return kTable;
}

AnnotatedSpec ReadAnnotatedSpec(const std::map<std::string, std::string>& annotations) {
  AnnotatedSpec out;
  const std::string prefix = std::string(kGroup) + "/";
  for (const auto& [name, value] : annotations) {
    if (!name.starts_with(prefix) || name == kWarmAnnotation) {
      continue;
    }
    if (const SpecAnnotation* row = Find(name); row != nullptr) {
      Read(*row, value, out);
    } else {
      out.problems.push_back(Unknown(name));
    }
  }
  Truncate(out.problems);
  return out;
}

}  // namespace cachewarm::api
