// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/run/engines.h"

namespace cachewarm::cli {

// A command that has not started yet.
struct PlannedCommand {
  std::vector<std::string> words;
  std::map<std::string, std::string> environment;
  std::string directory;  // absolute; relative paths of `words` begin here
};

// Returns the path of the Python interpreter that `command` runs: the first word of the command
// that is an interpreter or a script of one, found through PATH, "#!" lines, "env" and the shims of
// pyenv. If no word is one, for example in a shell script, returns the python3 or python of PATH.
// Empty if there is none. Reads only the beginning of files and executes nothing.
std::string FindInterpreter(const PlannedCommand& command);

// Returns the versions of the engines that this interpreter would import, from the names of the
// *.dist-info directories in PYTHONPATH, its virtual environment, the user's and the system's
// packages. Of several directories the first that has an engine counts, as in sys.path. Imports and
// executes nothing; reads at most 50,000 names of a directory.
EngineVersions FindEngines(const PlannedCommand& command);

}  // namespace cachewarm::cli
