// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/settings/arguments.h"

namespace cachewarm::cli {

using settings::Arguments;
using settings::Option;
using settings::Range;

}  // namespace cachewarm::cli
