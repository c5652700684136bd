// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/api/kubernetes.h"
#include "lib/codec/reader.h"

// Readers of the parts of an object. They record the first problem in `reader`.
namespace cachewarm::api::json {

void ReadMeta(codec::Reader& object, ObjectMeta& out);
void ReadPod(codec::Reader& object, Pod& out);

// Reads a Kubernetes ResourceList.
void ReadResources(codec::Reader& reader, std::string_view name, Resources& out);

}  // namespace cachewarm::api::json
