// SPDX-License-Identifier: Apache-2.0
#pragma once

// The full type behind codec::Json. Costs 2 CPU seconds a translation unit: only in .cc files.
#include <nlohmann/json.hpp>

#include "lib/codec/json_fwd.h"
