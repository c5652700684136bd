// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "agent/evidence/events.h"
#include "agent/evidence/watcher.h"

namespace cachewarm::agent {

// The scopes of our own reads. Thread-safe. An expected event is taken out once; expectations of
// an ended scope live until the events that were queued at its end have been read.
class OwnReadScopes {
 public:
  OwnReadScopes();
  OwnReadScopes(const OwnReadScopes&) = delete;
  OwnReadScopes& operator=(const OwnReadScopes&) = delete;
  ~OwnReadScopes();

  // The scope may outlive this object; it does nothing then.
  OwnReads Begin(std::string_view generation);
  // Is this event of ours? Then it counts no more.
  bool Consume(std::string_view generation, const FileEvent& event);

  // Ended scopes at the time of the call; Forget them once everything queued before it is read.
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
