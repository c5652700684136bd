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

// An immutable object from the API server, shared between threads. Null: no such object.
using Object = std::shared_ptr<const codec::Json>;

// Namespace and name of an object. `ns` is empty for cluster-scoped kinds. The text form "ns/name"
// or "name" is the key of work queues.
struct ObjectName {
  std::string ns;
  std::string name;

  std::string ToString() const { return ns.empty() ? name : ns + "/" + name; }
  // Parses the text form. INVALID_ARGUMENT for an empty name or more than one slash.
  static absl::StatusOr<ObjectName> Parse(std::string_view key);

  friend bool operator==(const ObjectName&, const ObjectName&) = default;
  friend auto operator<=>(const ObjectName&, const ObjectName&) = default;
};

// Functions that read metadata of an object. They never throw: a member that is missing or has
// another type gives an empty value.
ObjectName NameOf(const codec::Json& object);
std::string UidOf(const codec::Json& object);
std::string ResourceVersionOf(const codec::Json& object);
std::map<std::string, std::string> LabelsOf(const codec::Json& object);
std::map<std::string, std::string> AnnotationsOf(const codec::Json& object);
bool IsDeleting(const codec::Json& object);

// The controller among the ownerReferences; empty if there is none.
struct Owner {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
};
Owner ControllerOf(const codec::Json& object);

}  // namespace cachewarm::kube
