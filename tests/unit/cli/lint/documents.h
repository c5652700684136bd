// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/lint/lint.h"
#include "cli/lint/read_objects.h"
#include "gtest/gtest.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"

namespace cachewarm::lint {

inline Input InputOf(const std::string& documents, Scope scope = Scope::kNamedObject) {
  Input input;
  const auto parsed = codec::ParseYamlStream(documents);
  EXPECT_TRUE(parsed.ok()) << parsed.status() << "\n" << documents;
  for (const codec::Json& document : parsed.value_or(std::vector<codec::Json>())) {
    const auto added = AddObject(document, scope, input);
    EXPECT_TRUE(added.ok()) << added.status();
  }
  return input;
}

// The findings of all rules as "RULE FIELD: MESSAGE".
inline std::vector<std::string> FindingsOf(const Input& input) {
  std::vector<std::string> texts;
  for (const Finding& finding : Lint(input, {})) {
    texts.push_back(std::string(finding.rule->name) + " " + finding.problem.field + ": " +
                    finding.problem.message);
  }
  return texts;
}

// A Deployment with one container that requests a GPU and has these members, in flow style.
inline std::string Deployment(const std::string& container, const std::string& pod = "",
                              const std::string& name = "llama") {
  return "---\nkind: Deployment\nmetadata: {name: " + name +
         ", namespace: models}\nspec: {template: {spec: {" + pod + (pod.empty() ? "" : ", ") +
         "containers: [{name: vllm, resources: {limits: {nvidia.com/gpu: 1}}, " + container +
         "}]}}}\n";
}

}  // namespace cachewarm::lint
