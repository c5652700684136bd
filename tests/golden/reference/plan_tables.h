// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// Prints the two tables of operator/plan as Markdown.
namespace cachewarm::reference {

std::string GatesTable();   // operator/plan/gates/gate_rules.h
std::string BuildsTable();  // operator/plan/builders/transitions.h

}  // namespace cachewarm::reference
