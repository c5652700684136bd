// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/own_reads.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace cachewarm::agent {

struct OwnReadScopes::Scope {
  struct Expected {
    int opens = 0;
    int reads = 0;
  };

  std::string generation;
  std::map<std::string, Expected, std::less<>> files;
  bool ended = false;
};

struct OwnReadScopes::Shared {
  std::mutex mutex;
  std::vector<std::unique_ptr<Scope>> scopes;
};

class OwnReadScopes::ScopeSink final : public OwnReads::Sink {
 public:
  ScopeSink(std::shared_ptr<Shared> shared, Scope* scope)
      : shared_(std::move(shared)), scope_(scope) {}
  ScopeSink(const ScopeSink&) = delete;
  ScopeSink& operator=(const ScopeSink&) = delete;
  ~ScopeSink() override {
    const std::lock_guard lock(shared_->mutex);
    scope_->ended = true;
  }

  void Opening(std::string_view path) override {
    const std::lock_guard lock(shared_->mutex);
    Scope::Expected& expected = scope_->files[std::string(path)];
    ++expected.opens;
    ++expected.reads;
  }

 private:
  std::shared_ptr<Shared> shared_;
  Scope* scope_;  // owned by shared_ until the scope has ended
};

OwnReadScopes::OwnReadScopes() : shared_(std::make_shared<Shared>()) {}
OwnReadScopes::~OwnReadScopes() = default;

OwnReads OwnReadScopes::Begin(std::string_view generation) {
  const std::lock_guard lock(shared_->mutex);
  Scope& scope = *shared_->scopes.emplace_back(std::make_unique<Scope>());
  scope.generation = std::string(generation);
  return OwnReads(std::make_unique<ScopeSink>(shared_, &scope));
}

bool OwnReadScopes::Consume(std::string_view generation, const FileEvent& event) {
  if (event.type != FileEventType::kOpened && event.type != FileEventType::kRead) {
    return false;
  }
  const std::lock_guard lock(shared_->mutex);
  for (const std::unique_ptr<Scope>& scope : shared_->scopes) {
    const auto found =
        scope->generation == generation ? scope->files.find(event.path) : scope->files.end();
    if (found == scope->files.end()) {
      continue;
    }
    int& left = event.type == FileEventType::kOpened ? found->second.opens : found->second.reads;
    if (left > 0) {
      --left;
      return true;
    }
  }
  return false;
}

OwnReadScopes::Ended OwnReadScopes::EndedScopes() const {
  const std::lock_guard lock(shared_->mutex);
  Ended ended;
  for (const std::unique_ptr<Scope>& scope : shared_->scopes) {
    if (scope->ended) {
      ended.push_back(scope.get());
    }
  }
  return ended;
}

void OwnReadScopes::Forget(const Ended& ended) {
  const std::lock_guard lock(shared_->mutex);
  std::erase_if(shared_->scopes, [&ended](const std::unique_ptr<Scope>& scope) {
    return std::find(ended.begin(), ended.end(), scope.get()) != ended.end();
  });
}

}  // namespace cachewarm::agent
