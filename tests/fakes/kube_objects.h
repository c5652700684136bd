// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"
#include "lib/kube/core/object.h"
#include "lib/kube/core/request.h"
#include "lib/kube/core/watch_event.h"
#include "tests/fakes/kube_apply.h"
#include "tests/fakes/kube_route.h"

namespace cachewarm::fakes {

// The storage of FakeApiServer and the rules of its writes. Not thread-safe.
class KubeObjects {
 public:
  using WriteHook = std::function<absl::Status(const kube::Request&, codec::Json&)>;

  // One entry of the history that watches are served from.
  struct Entry {
    int64_t version = 0;
    const kube::Resource* resource = nullptr;
    kube::Object before;
    kube::Object after;
  };

  explicit KubeObjects(const Clock& clock) : clock_(clock) {}

  absl::StatusOr<codec::Json> Write(const kube::Request& request, const KubeRoute& route);
  absl::StatusOr<codec::Json> List(const KubeRoute& route) const;
  absl::StatusOr<codec::Json> Get(const KubeRoute& route) const;

  // Stores the object, status included, as a user with all rights.
  kube::Object Put(const kube::Resource& resource, codec::Json object);
  void Remove(const kube::Resource& resource, const kube::ObjectName& name);
  kube::Object Find(const kube::Resource& resource, const kube::ObjectName& name) const;
  std::vector<kube::Object> All(const kube::Resource& resource) const;

  void set_write_hook(WriteHook hook) { hook_ = std::move(hook); }
  const std::vector<Entry>& history() const { return history_; }
  int64_t version() const { return version_; }
  int64_t oldest() const { return oldest_; }
  void Compact();

 private:
  struct Stored {
    kube::Object object;
    FieldOwners owners;
  };
  using Key = std::pair<std::string, kube::ObjectName>;  // plural.group, name

  static Key KeyOf(const kube::Resource& resource, const kube::ObjectName& name);
  absl::StatusOr<codec::Json> Create(const kube::Request& request, const KubeRoute& route,
                                     codec::Json object);
  absl::StatusOr<codec::Json> Change(const kube::Request& request, const KubeRoute& route);
  absl::StatusOr<codec::Json> Apply(const kube::Request& request, const KubeRoute& route,
                                    const codec::Json& config);
  absl::StatusOr<codec::Json> Delete(const kube::Request& request, const KubeRoute& route);
  absl::StatusOr<codec::Json> Commit(const kube::Request& request, const KubeRoute& route,
                                     codec::Json object, FieldOwners owners);
  void Store(const kube::Resource& resource, codec::Json object, FieldOwners owners);
  codec::Json WithIdentity(const KubeRoute& route, codec::Json object);

  const Clock& clock_;
  WriteHook hook_;
  std::map<Key, Stored> stored_;
  std::vector<Entry> history_;
  int64_t version_ = 100;
  int64_t oldest_ = 100;
  int64_t uids_ = 0;
};

absl::Status KubeError(int code, std::string reason, std::string message);

}  // namespace cachewarm::fakes
