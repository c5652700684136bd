// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines codec::Json. It costs 2 CPU seconds per translation unit: include it in .cc files only.
#include <nlohmann/json.hpp>

#include "lib/codec/json_fwd.h"
