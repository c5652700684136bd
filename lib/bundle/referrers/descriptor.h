// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/bundle/format.h"
#include "lib/codec/json_fwd.h"
#include "lib/codec/reader.h"

namespace cachewarm::bundle {

// Encode and decode media type, digest and size of a blob (OCI image-spec 1.1 "Content
// Descriptors"). All three are required.
codec::Json DescriptorJson(const Descriptor& blob);
void ReadDescriptor(codec::Reader& reader, Descriptor& out);

}  // namespace cachewarm::bundle
