// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::kube {

// An object as the API server gave it, shared between threads, never changed. Null: no such object.
using Object = std::shared_ptr<const codec::Json>;

// Where an object is. `ns` is empty for cluster-scoped kinds. The text form "ns/name" or "name" is
// the key of work queues.
struct ObjectName {
  std::string ns;
  std::string name;

  std::string ToString() const { return ns.empty() ? name : ns + "/" + name; }
  // INVALID_ARGUMENT for an empty name or more than one slash.
  static absl::StatusOr<ObjectName> Parse(std::string_view key);

  friend bool operator==(const ObjectName&, const ObjectName&) = default;
  friend auto operator<=>(const ObjectName&, const ObjectName&) = default;
};

// Readers of metadata that never throw: whatever is absent or of another type reads as empty.
ObjectName NameOf(const codec::Json& object);
std::string UidOf(const codec::Json& object);
std::string ResourceVersionOf(const codec::Json& object);
std::map<std::string, std::string> LabelsOf(const codec::Json& object);
std::map<std::string, std::string> AnnotationsOf(const codec::Json& object);
bool IsDeleting(const codec::Json& object);

// The member below `path` ("spec", "nodeName"), or nullptr. Never throws.
const codec::Json* At(const codec::Json& object, std::initializer_list<std::string_view> path);
// The text below `path`; empty when it is absent or no string.
std::string TextAt(const codec::Json& object, std::initializer_list<std::string_view> path);

// The controller among the ownerReferences; empty texts when there is none.
struct Owner {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
};
Owner ControllerOf(const codec::Json& object);

}  // namespace cachewarm::kube
