// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/evidence/events.h"

namespace cachewarm::agent {

// Scope of the agent's own reads of one tree. Movable. Opening() is thread-safe.
class OwnReads {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void Opening(std::string_view path) = 0;
  };

  explicit OwnReads(std::unique_ptr<Sink> sink) : sink_(std::move(sink)) {}

  // Declares one read-only open and close of `path` (relative to the tree); call it immediately
  // before the open.
  void Opening(std::string_view path) {
    if (sink_ != nullptr) {
      sink_->Opening(path);
    }
  }

 private:
  std::unique_ptr<Sink> sink_;
};

// Keeps events of the agent's own reads out of the records, because the records serve to find out
// which files pods read. The agent reads a tree within a scope. A scope lists the events that these
// reads will raise. When such an event arrives, it is not recorded and is removed from the list. An
// ended scope is kept until the events that were queued at its end have been read. Thread-safe.
class OwnReadScopes {
 public:
  OwnReadScopes();
  OwnReadScopes(const OwnReadScopes&) = delete;
  OwnReadScopes& operator=(const OwnReadScopes&) = delete;
  ~OwnReadScopes();

  // Begins a scope. The scope may outlive this object, and then has no effect.
  OwnReads Begin(std::string_view generation);
  // Returns true if a read by the agent raised this event. Each expected event matches only once.
  bool Consume(std::string_view generation, const FileEvent& event);

  // Returns the scopes that have ended. Once all events that were queued at this call have been
  // read, pass the scopes to Forget().
  using Ended = std::vector<const void*>;
  Ended EndedScopes() const;
  void Forget(const Ended& ended);

 private:
  struct Scope;
  struct Shared;
  class ScopeSink;

  std::shared_ptr<Shared> shared_;
};

}  // namespace cachewarm::agent
