// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

// Renders docs/reference from the tables in the code.
namespace cachewarm::reference {

// Returns the Markdown text of every page by its file name ("settings.md").
std::map<std::string, std::string> Pages();

}  // namespace cachewarm::reference
