// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/unavailable_watcher.h"

namespace cachewarm::agent {
namespace {

class UnavailableWatcher final : public Watcher {
 public:
  absl::Status AddTree(const WatchedTree&) override { return absl::OkStatus(); }
  void RemoveTree(std::string_view) override {}
  EventRecord Read(std::string_view, std::string_view, WallTime, WallTime) override {
    return {.complete = false};
  }
  EventRecord ReadTree(std::string_view, WallTime, WallTime) override {
    return {.complete = false};
  }
  OwnReads BeginOwnReads(std::string_view) override { return OwnReads(nullptr); }
  int directories() const override { return 0; }
  int events() const override { return 0; }
  int overflows() const override { return 0; }
};

}  // namespace

std::unique_ptr<Watcher> MakeUnavailableWatcher() {
  return std::make_unique<UnavailableWatcher>();
}

}  // namespace cachewarm::agent
