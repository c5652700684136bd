// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/list_objects.h"

#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/error.h"
#include "lib/kube/core/request.h"
#include "lib/kube/core/watcher.h"

namespace cachewarm::cli {
namespace {

constexpr int kObjectsPerPage = 100;
constexpr int kExpiredListTries = 3;

}  // namespace

absl::Status ForEachObject(kube::Client& client, const kube::Resource& resource,
                           const std::string& ns, const Clock& clock, const ListedObjects& listed,
                           std::stop_token stop) {
  kube::Watcher pages({}, kObjectsPerPage);
  for (int expired = 0; !stop.stop_requested();) {
    const kube::WatcherAction action = pages.Next(clock.Monotonic(), 0.0);
    if (action.type == kube::WatcherActionType::kWatch) {
      return absl::OkStatus();  // all objects are listed
    }
    if (action.type == kube::WatcherActionType::kSleep) {
      SleepFor(clock, action.delay, stop);
      continue;
    }
    if (pages.IsFirstPage() && listed.on_restart) {
      listed.on_restart();
    }
    absl::Status added;
    const auto page = client.DoList(
        List(resource,
             {.ns = ns, .limit = action.page_items, .continue_token = action.continue_token}),
        [&](const codec::Json& object) {
          if (added.ok()) {
            added = listed.on_object(object);
          }
        },
        stop);
    CW_RETURN_IF_ERROR(Annotate(added, resource.plural));
    if (page.ok()) {
      pages.OnPage(codec::TextAt(*page, {"metadata", "continue"}), "");
      continue;
    }
    const bool has_expired = absl::IsOutOfRange(page.status()) && ++expired < kExpiredListTries;
    const bool is_too_long = kube::IsTooLong(page.status()) && action.page_items > 1;
    if (!has_expired && !is_too_long) {
      return Annotate(page.status(), resource.plural);
    }
    pages.OnListFailure(page.status(), clock.Monotonic());
  }
  return absl::CancelledError("interrupted");
}

}  // namespace cachewarm::cli
