// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/codec/json_fwd.h"

namespace cachewarm::fakes {

// A field as server-side apply owns it: the path to a leaf, list items by their key.
using FieldPath = std::vector<std::string>;
using FieldSet = std::set<FieldPath>;
// The fields of one object that each field manager applied last.
using FieldOwners = std::map<std::string, FieldSet>;

// Every field that `config` names, without apiVersion, kind and the identity in metadata.
FieldSet FieldsOf(const codec::Json& config);

// Server-side apply with force: removes the fields that only `manager` applied and that `config`
// omits, then merges `config` into `live`. Lists whose items all have a key (uid, podUID, id, key
// and digest, type or name) merge by it, others are replaced.
void ApplyConfig(const std::string& manager, const codec::Json& config, codec::Json& live,
                 FieldOwners& owners);

}  // namespace cachewarm::fakes
