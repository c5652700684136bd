// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/controller.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/kube/core/error.h"

namespace cachewarm::kube {
namespace {

constexpr Duration kExhaustedLeast = std::chrono::seconds(1);

bool IsTerminal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

// Converts an exception into an error. The JSON library throws if a value has an unexpected type;
// such a bug must affect only one key, not the process.
absl::StatusOr<Outcome> Guarded(const Reconcile& reconcile, const std::string& key,
                                std::stop_token stop) {
  try {
    return reconcile(key, stop);
  } catch (const std::exception& error) {
    return absl::UnimplementedError(
        fmt::format("internal error (please report): {}", error.what()));
  }
}

}  // namespace

Controller::Controller(WorkQueue& queue, const Clock& clock, Log& log, ControllerOptions options,
                       Reconcile reconcile)
    : queue_(queue),
      clock_(clock),
      log_(log),
      options_(std::move(options)),
      reconcile_(std::move(reconcile)) {}

void Controller::Run(std::stop_token stop) {
  std::vector<std::jthread> workers;
  for (int i = 0; i < std::max(1, options_.workers); ++i) {
    workers.emplace_back([this, stop] { Work(stop); });
  }
}

void Controller::Work(std::stop_token stop) {
  while (const std::optional<std::string> key = queue_.Get(stop)) {
    const MonoTime began = clock_.Monotonic();
    const std::string_view result = Settle(*key, Guarded(reconcile_, *key, stop));
    queue_.Done(*key);
    if (options_.on_reconcile) {
      options_.on_reconcile(result, clock_.Monotonic() - began);
    }
  }
}

std::string_view Controller::Settle(const std::string& key,
                                    const absl::StatusOr<Outcome>& outcome) {
  if (outcome.ok() || absl::IsCancelled(outcome.status())) {
    queue_.Forget(key);
    if (!outcome.ok() || !outcome->requeue_after.has_value()) {
      return "success";
    }
    queue_.AddAfter(key, *outcome->requeue_after);
    return "requeue";
  }
  const absl::Status& status = outcome.status();
  const bool terminal = IsTerminal(status);
  if (terminal) {
    queue_.Forget(key);
    queue_.AddAfter(key, options_.terminal_retry);
  } else if (absl::IsResourceExhausted(status)) {
    queue_.AddAfter(key,
                    std::max(kExhaustedLeast, http::RetryAfterOf(status).value_or(Duration(0))));
  } else {
    queue_.AddWithBackoff(key);
  }
  // A conflict (ABORTED) is normal: the local store had an older version of the object.
  const LogLevel level = absl::IsAborted(status) ? LogLevel::kDebug : LogLevel::kWarning;
  log_.Write(level, "reconcile failed",
             {{"controller", options_.name},
              {"key", key},
              {"err", Message(status)},
              {"code", absl::StatusCodeToString(status.code())},
              {"failures", queue_.Failures(key)}});
  return terminal ? "terminal" : "retry";
}

}  // namespace cachewarm::kube
