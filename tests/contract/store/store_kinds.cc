// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/store/store_kinds.h"

#include <atomic>
#include <utility>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/store/layout/layout_store.h"
#include "lib/bundle/store/limited/limited_store.h"
#include "lib/bundle/store/metered/metered_store.h"
#include "lib/bundle/store/mirrors/mirrored_store.h"
#include "lib/bundle/store/open.h"
#include "lib/bundle/store/registry/registry_store.h"
#include "lib/bundle/store/retry/retry_store.h"
#include "lib/http/client.h"
#include "tests/fakes/memory_store.h"

namespace cachewarm::bundle {
namespace {

StoreUnderTest MakeMem() {
  return {.store = std::make_unique<MemoryStore>()};
}

StoreUnderTest MakeLayout() {
  StoreUnderTest made{.directory = std::make_unique<TempDir>()};
  made.store = std::make_unique<LayoutStore>(*made.directory / "store", SystemClock());
  return made;
}

// Returns a part of a repository's name that no other store of this process has. Stores of one
// registry are thereby isolated, so that the registry need not be started for each test.
std::string UniqueBase() {
  static std::atomic<int> count = 0;
  return fmt::format("base-{}", ++count);
}

// The registry without a password; runs until the process ends.
const RegistryProcess& SharedRegistry() {
  static const RegistryProcess registry;
  return registry;
}

// Opens a new base of the shared registry as the programs do.
StoreUnderTest MakeSharedRegistry() {
  StoreUnderTest made;
  made.store = *OpenStore(
      {.url = fmt::format("oci://{}/{}", SharedRegistry().address(), UniqueBase())}, SystemClock());
  return made;
}

// Uses an empty repository of the same registry as a mirror, and limits, as the agent may.
StoreUnderTest MakeMirroredRegistry() {
  const std::string host = SharedRegistry().address();
  StoreUnderTest made;
  made.store = *OpenStore({.url = fmt::format("oci://{}/{}", host, UniqueBase()),
                           .mirrors = {fmt::format("{}/{}", host, UniqueBase())},
                           .connections_max = 2,
                           .bytes_per_second = 1LL << 30},
                          SystemClock());
  return made;
}

// Uses small chunks, so that small blobs are sent with PATCH, and basic auth.
StoreUnderTest MakeGuardedRegistry() {
  static const RegistryProcess registry({.with_password = true});
  StoreUnderTest made;
  made.store = std::make_unique<RegistryStore>(
      RegistryOptions{.session = {.origin = "http://" + registry.address(),
                                  .host = registry.address(),
                                  .auth_file = registry.auth_file()},
                      .base = UniqueBase(),
                      .chunk_bytes = kSmallChunk},
      *http::MakeClient({}), SystemClock(), [] { return 0.0; });
  return made;
}

// The decorators of a store.
using Decorate = std::unique_ptr<Store> (*)(std::unique_ptr<Store> inner);

std::unique_ptr<Store> Limited(std::unique_ptr<Store> inner) {
  return std::make_unique<LimitedStore>(
      std::move(inner),
      StoreLimits{.connections = 1,
                  .downloads = std::make_shared<Bandwidth>(1LL << 30, SystemClock())});
}

// Adds an empty mirror and a mirror that is always down.
std::unique_ptr<Store> Mirrored(std::unique_ptr<Store> inner) {
  std::vector<std::unique_ptr<Store>> mirrors;
  mirrors.push_back(std::make_unique<MemoryStore>());
  auto down = std::make_unique<MemoryStore>();
  down->SetFault([](std::string_view) { return absl::UnavailableError("down"); });
  mirrors.push_back(std::move(down));
  return std::make_unique<MirroredStore>(std::move(inner), std::move(mirrors), SystemClock(),
                                         [] { return 0.0; });
}

std::unique_ptr<Store> Metered(std::unique_ptr<Store> inner) {
  return std::make_unique<MeteredStore>(std::move(inner), SystemClock(),
                                        [](const StoreCall& call) { EXPECT_GE(call.bytes, 0); });
}

std::unique_ptr<Store> Retrying(std::unique_ptr<Store> inner) {
  return std::make_unique<RetryStore>(
      std::move(inner), SystemClock(), [] { return 0.0; },
      RetryOptions{.backoff = {.first = Duration(1), .most = Duration(1)}});
}

// The decorators of the agent, and the one for directories.
std::unique_ptr<Store> AllAround(std::unique_ptr<Store> inner) {
  return Metered(Mirrored(Limited(Retrying(std::move(inner)))));
}

// Fails every second retryable call of each thread.
StoreUnderTest MakeFlaky() {
  auto flaky = std::make_unique<MemoryStore>();
  flaky->SetFault([](std::string_view call) {
    thread_local bool is_away = false;
    if (call == "Write" || call == "Commit" || call == "Ping") {
      return absl::OkStatus();
    }
    is_away = !is_away;
    return is_away ? absl::UnavailableError("away") : absl::OkStatus();
  });
  return {.store = Retrying(std::move(flaky))};
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const StoreKind& kind) {
  return out << kind.name;
}

StoreUnderTest MakeRegistry() {
  StoreUnderTest made{.registry = std::make_unique<RegistryProcess>()};
  made.store =
      *OpenStore({.url = fmt::format("oci://{}/base", made.registry->address())}, SystemClock());
  return made;
}

std::vector<StoreKind> AllKinds() {
  const struct {
    std::string name;
    StoreUnderTest (*make)();
    bool needs_registry = false;
  } stores[] = {{"mem", MakeMem}, {"layout", MakeLayout}, {"registry", MakeSharedRegistry, true}};
  const struct {
    std::string name;
    Decorate decorate;
  } decorators[] = {{"limited", Limited},
                    {"mirrored", Mirrored},
                    {"metered", Metered},
                    {"retrying", Retrying},
                    {"all_around", AllAround}};
  std::vector<StoreKind> kinds = {
      {.name = "flaky", .make = MakeFlaky},
      {.name = "registry_with_mirror", .needs_registry = true, .make = MakeMirroredRegistry},
      {.name = "guarded_registry", .needs_registry = true, .make = MakeGuardedRegistry}};
  for (const auto& store : stores) {
    kinds.push_back(
        {.name = store.name, .needs_registry = store.needs_registry, .make = store.make});
    for (const auto& decorator : decorators) {
      kinds.push_back({.name = decorator.name + "_" + store.name,
                       .needs_registry = store.needs_registry,
                       .make = [=] {
                         StoreUnderTest made = store.make();
                         made.store = decorator.decorate(std::move(made.store));
                         return made;
                       }});
    }
  }
  return kinds;
}

}  // namespace cachewarm::bundle
