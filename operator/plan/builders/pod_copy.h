// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/codec/json_fwd.h"

// Checks whether a builder Job may run a copy of the workload's pod. Pure.
namespace cachewarm::plan {

// Returns why a second pod of this template could disturb the workload, naming the field and the
// remedy; "" if it could not. The fields that forbid a second pod are hostNetwork, hostPort,
// resourceClaims, volumeClaimTemplates and writable PersistentVolumeClaims.
std::string CopyRefusal(const codec::Json& pod_template);

// True if a builder Job with this template would mount a PersistentVolumeClaim that the workload's
// pods also mount.
bool SharesVolumeClaim(const codec::Json& pod_template);

}  // namespace cachewarm::plan
