// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "cli/lint/pod_template.h"

// Values of a container that differ between the pods of one workload.
namespace cachewarm::lint {

// Returns true for paths of fieldRef whose value differs between pods or between nodes:
// metadata.name, metadata.uid, status.podIP, status.hostIP, spec.nodeName.
bool IsPerPodField(std::string_view field_path);

// Returns the names of the variables with a value per pod: a fieldRef, or a value that refers to
// such a variable with $(NAME).
std::set<std::string, std::less<>> PerPodVariables(const Container& container);

// Returns the first of `names` that `text` refers to: $(NAME) of Kubernetes, $NAME or ${NAME} of a
// shell; nullopt if it refers to none.
std::optional<std::string> FirstReference(std::string_view text,
                                          const std::set<std::string, std::less<>>& names);

// Returns `text` with every $(NAME), ${NAME} and $NAME replaced that names a variable of the
// container with a literal value.
std::string Expanded(const Container& container, std::string text);

// Returns the model of the container's command line, not expanded: the value of --model,
// --model-path or --model-name-or-path, or the operand of "vllm serve". Empty: it names none.
std::string ModelOf(const Container& container);

}  // namespace cachewarm::lint
