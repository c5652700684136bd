// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cachewarm::lint {

// Splits a line or script of a shell into words: at blanks, line breaks, ";", "&" and "|" that are
// outside of quotes, $(...) and `...`. Removes quotes. Keeps $(...) and `...` as they are. Never
// fails: an unclosed quote ends at the end of the text.
std::vector<std::string> ShellWords(std::string_view text);

// Returns true if the text makes a different value at each start of a pod: it calls date, mktemp,
// uuidgen or hostname, or uses $RANDOM, $HOSTNAME or /proc/sys/kernel/random.
bool IsRandom(std::string_view text);

}  // namespace cachewarm::lint
