// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/discovery/presence.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/object.h"

namespace cachewarm::kube {

using codec::Json;

bool ListsResource(const Json& listed, const Resource& resource) {
  const Json& kinds = codec::ListAt(listed, {"resources"});
  return std::any_of(kinds.begin(), kinds.end(), [&](const Json& kind) {
    return codec::TextAt(kind, {"name"}) == resource.plural &&
           codec::TextAt(kind, {"kind"}) == resource.kind;
  });
}

absl::StatusOr<Presence> LookUp(Client& client, const Resource& resource, bool may_list,
                                std::stop_token stop) {
  const auto listed =
      client.Do(GetPath(fmt::format("/apis/{}/{}", resource.group, resource.version)), stop);
  if (absl::IsNotFound(listed.status())) {
    return Presence::kAbsent;
  }
  if (!listed.ok()) {
    return listed.status();
  }
  if (!ListsResource(*listed, resource)) {
    return Presence::kAbsent;
  }
  if (!may_list) {
    return Presence::kServed;
  }
  const absl::Status tried = client.Do(List(resource, {.limit = 1}), stop).status();
  if (absl::IsPermissionDenied(tried)) {
    return Presence::kForbidden;
  }
  // Not served yet: discovery may list a kind a moment before its endpoint exists.
  if (absl::IsNotFound(tried)) {
    return Presence::kAbsent;
  }
  return tried.ok() ? absl::StatusOr<Presence>(Presence::kServed) : tried;
}

}  // namespace cachewarm::kube
