// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/codec/json_fwd.h"

namespace cachewarm::fakes {

// Fields as server-side apply owns them: the way to a leaf, list items by their key.
using FieldPath = std::vector<std::string>;
using FieldSet = std::set<FieldPath>;
// Of one object: what each field manager applied last.
using FieldOwners = std::map<std::string, FieldSet>;

// Every field that `config` names, without apiVersion, kind and the identity in metadata.
FieldSet FieldsOf(const codec::Json& config);

// One server-side apply with force: takes away what `manager` applied before and does not now (and
// nobody else applied), then merges `config` into `live`. Lists whose items all have a key of
// their own (uid, podUID, id, key and digest, type or name) merge by it, others are replaced.
void ApplyConfig(const std::string& manager, const codec::Json& config, codec::Json& live,
                 FieldOwners& owners);

}  // namespace cachewarm::fakes
