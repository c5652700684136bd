// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/kube/client/client.h"

namespace cachewarm::fakes {

struct KubeRoute;
struct KubeSelector;

// An API server in the process: a kube::Client over a map. Passes tests/contract like the real one.
//
// Supported: list with selectors (labels =, !=, in, notin, exists; fields metadata.name,
// metadata.namespace, spec.nodeName, status.phase), limit and continue, watch with bookmarks and
// 410, create (generateName too), update, delete with preconditions, JSON patch, merge patch,
// server-side apply with managers, status subresource, dryRun, uid, generation, resourceVersion
// conflicts, name validation, discovery of a group and version.
// Known differences: no schemas, defaults or admission unless set by OnWrite(); apply merges lists
// by uid, podUID, id, key, digest, type or name where every item has one, others are replaced; no
// managedFields; namespaces need not exist; pages of one list may differ in version; no
// finalizers, no garbage collection by owner; deletion is at once; no RBAC; nodes run nothing.
class FakeApiServer final : public kube::Client {
 public:
  explicit FakeApiServer(const Clock& clock);
  ~FakeApiServer() override;

  absl::StatusOr<codec::Json> Do(const kube::Request& request, std::stop_token stop) override;
  absl::StatusOr<std::string> DoText(const kube::Request& request, std::stop_token stop) override;
  absl::Status Watch(const kube::Request& request, const kube::WatchEventHandler& on_event,
                     std::stop_token stop) override;

  // Stores or replaces the object, status included, as a user with all rights.
  kube::Object Put(const kube::Resource& resource, const codec::Json& object);
  kube::Object Find(const kube::Resource& resource, const kube::ObjectName& name) const;
  std::vector<kube::Object> All(const kube::Resource& resource) const;
  // Sets the log of a container of a pod. A pod without a log answers 404.
  void SetLog(const kube::ObjectName& pod, const std::string& container, std::string text);
  void Remove(const kube::Resource& resource, const kube::ObjectName& name);
  // Changes one object in place; the object must exist.
  void Edit(const kube::Resource& resource, const kube::ObjectName& name,
            const std::function<void(codec::Json&)>& edit);

  // Stops or resumes serving a kind, as if its definition were removed or installed. Initially
  // every known kind is served.
  void Serve(const kube::Resource& resource, bool served);

  // Called before every request; an error is returned to the caller. For faults and counting.
  using Interceptor = std::function<absl::Status(const kube::Request&)>;
  void Intercept(Interceptor interceptor);
  // Called with every object that is about to be stored (dry runs too); may change or refuse it.
  using WriteHook = std::function<absl::Status(const kube::Request&, codec::Json&)>;
  void OnWrite(WriteHook hook);

  // Ends every running watch with this status (OK: as at its timeout) after it has reported all
  // earlier changes and bookmarks.
  void BreakWatches(const absl::Status& status);
  // Forgets the history, so that any watch from an older version answers 410.
  void Compact();
  void SendBookmarks();

  // Every request so far, as "verb resource ns/name".
  std::vector<std::string> Requests() const;
  int watches() const;  // running now

 private:
  struct State;
  struct Listener {
    const kube::WatchEventHandler& on_event;
    const KubeSelector& selector;
    int64_t seen = 0;
    int64_t breaks = 0;     // before the watch began
    int64_t bookmarks = 0;  // likewise
  };
  std::optional<KubeRoute> ServedRoute(const kube::Request& request) const;
  std::optional<codec::Json> Discover(const kube::Request& request) const;
  absl::Status Admit(const kube::Request& request, const KubeRoute& route, std::stop_token stop);
  absl::Status Pump(const KubeRoute& route, const Listener& listener, std::stop_token stop);

  std::unique_ptr<State> state_;
};

}  // namespace cachewarm::fakes
