// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines codec::Json. Include this header in .cc files only: it costs 2 CPU seconds per
// translation unit.
#include <nlohmann/json.hpp>

#include "lib/codec/json_fwd.h"
