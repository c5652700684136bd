// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "agent/evidence/tree_watcher.h"

namespace cachewarm::agent {

// A watcher whose events are set by the test. The record of any other tree is empty and incomplete.
class FakeWatcher final : public Watcher {
 public:
  absl::Status AddTree(const WatchedTree& tree) override {
    std::lock_guard lock(mutex_);
    trees_[tree.generation] = tree;
    return absl::OkStatus();
  }
  void RemoveTree(std::string_view generation) override {
    std::lock_guard lock(mutex_);
    trees_.erase(std::string(generation));
    records_.erase(std::string(generation));
  }
  EventRecord Read(std::string_view warmup_uid, std::string_view, WallTime begin,
                   WallTime end) override {
    return Find(std::string(warmup_uid), begin, end);
  }
  EventRecord ReadTree(std::string_view generation, WallTime begin, WallTime end) override {
    return Find(std::string(generation), begin, end);
  }
  OwnReads BeginOwnReads(std::string_view) override {
    return OwnReads(std::make_unique<CountingSink>(*this));
  }
  int directories() const override { return static_cast<int>(trees().size()); }
  int events() const override { return 0; }
  int overflows() const override { return overflows_; }

  void SetOverflows(int overflows) { overflows_ = overflows; }
  // `name` is a generation or a warmup uid.
  void SetEvents(const std::string& name, std::vector<FileEvent> events) {
    std::lock_guard lock(mutex_);
    records_[name] = {.events = std::move(events), .complete = true};
  }
  std::set<std::string> trees() const {
    std::lock_guard lock(mutex_);
    std::set<std::string> names;
    for (const auto& [generation, tree] : trees_) {
      names.insert(generation);
    }
    return names;
  }
  std::vector<std::string> own_reads() const {
    std::lock_guard lock(mutex_);
    return own_reads_;
  }

 private:
  class CountingSink final : public OwnReads::Sink {
   public:
    explicit CountingSink(FakeWatcher& watcher) : watcher_(watcher) {}
    void Opening(std::string_view path) override {
      std::lock_guard lock(watcher_.mutex_);
      watcher_.own_reads_.emplace_back(path);
    }

   private:
    FakeWatcher& watcher_;
  };

  EventRecord Find(const std::string& name, WallTime begin, WallTime end) const {
    std::lock_guard lock(mutex_);
    const auto found = records_.find(name);
    if (found == records_.end()) {
      return {.complete = false};
    }
    EventRecord record{.complete = found->second.complete};
    for (const FileEvent& event : found->second.events) {
      if (event.time >= begin && event.time <= end) {
        record.events.push_back(event);
      }
    }
    return record;
  }

  mutable std::mutex mutex_;
  std::map<std::string, WatchedTree> trees_;
  std::map<std::string, EventRecord> records_;
  std::vector<std::string> own_reads_;
  std::atomic<int> overflows_ = 0;
};

}  // namespace cachewarm::agent
