// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "lib/api/json/tables.h"

// Table of compile.overrides. Members besides those of its rows are rejected, so that a field that
// the operator would ignore is reported.
namespace cachewarm::api::json {

bool IsTolerationOperator(std::string_view text);
bool IsTaintEffect(std::string_view text);

void CheckVariable(codec::Reader& reader, const EnvVar& variable);
void CheckToleration(codec::Reader& reader, const Toleration& toleration);
void CheckResources(codec::Reader& reader, const ContainerResources& resources);
void CheckOverrides(codec::Reader& reader, const Overrides& overrides);

// Reads a Kubernetes ResourceList and keeps the quantities as text.
void ReadQuantities(const Rule& rule, codec::Reader& reader,
                    std::map<std::string, std::string>& out);

inline constexpr Limit kArguments{.items = 64, .bytes = 4096};

inline constexpr Field<EnvVar> kVariable[] = {
    Required<&EnvVar::name>("name", kEnvName),
    Always<&EnvVar::value>("value", {.bytes = 4096}),
    Check<&CheckVariable>(),
};

inline constexpr Field<Toleration> kToleration[] = {
    Required<&Toleration::key>("key", {.bytes = 317}),
    Optional<&Toleration::op>(
        "operator",
        {.bytes = 6, .pattern = &IsTolerationOperator, .words = "expected one of Equal, Exists"}),
    Optional<&Toleration::value>("value", kLabel),
    Optional<&Toleration::effect>(
        "effect", {.bytes = 16,
                   .pattern = &IsTaintEffect,
                   .words = "expected one of NoSchedule, PreferNoSchedule, NoExecute"}),
    Check<&CheckToleration>(),
};

template <auto kMember>
constexpr Field<ContainerResources> Quantities(std::string_view name) {
  return Custom<ContainerResources>(
      {.name = name, .limit = {.items = 16, .bytes = 32}},
      [](const Rule& rule, codec::Reader& reader, ContainerResources& out) {
        ReadQuantities(rule, reader, out.*kMember);
      },
      [](const Rule& rule, const ContainerResources& resources, Writer& out) {
        WriteValue(rule, resources.*kMember, out);
      });
}

inline constexpr Field<ContainerResources> kContainerResources[] = {
    Required<&ContainerResources::container>("container", kDnsLabel),
    Quantities<&ContainerResources::requests>("requests"),
    Quantities<&ContainerResources::limits>("limits"),
    Check<&CheckResources>(),
};

inline constexpr Field<Overrides> kOverrides[] = {
    Optional<&Overrides::command>("command", kArguments),
    Optional<&Overrides::args>("args", kArguments),
    Optional<&Overrides::env, kVariable>("env", {.items = 64}),
    Optional<&Overrides::tolerations, kToleration>("tolerations", {.items = 16}),
    Optional<&Overrides::node_selector>("nodeSelector", kLabelMap),
    Optional<&Overrides::resources, kContainerResources>("resources", {.items = 16}),
    Check<&CheckOverrides>(),
};

}  // namespace cachewarm::api::json
