// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/bundle/gc/plan.h"
#include "lib/bundle/transfer.h"

// Reads what a collection is planned from, and carries out its plan. Every function blocks, and
// returns CANCELLED soon after `stop`.
namespace cachewarm::bundle {

// Reads the manifests of a repository, and their referrers. A manifest that is damaged, too large
// or of an unknown kind becomes an item with a problem; any other error of the store is returned.
absl::StatusOr<GcRepository> ReadGcRepository(const RepositoryRef& ref, std::stop_token stop);

enum class GcResult {
  kKept,
  kWouldDelete,  // dry run
  kDeleted,
  kChanged,  // kept: published again or tagged since it was listed, or related to such a manifest
  kFailed,
};
std::string_view NameOf(GcResult result);

// Receives the result of each item, in the order of the plan, and the error of kFailed. If the
// collection ends with an error, receives only the deleted items.
using OnGcItem =
    std::function<void(const GcItem& item, GcResult result, const absl::Status& status)>;

struct GcRun {
  const GcRepositoryPlan& plan;
  const GcPolicy& policy;
  bool dry_run = false;
  OnGcItem on_item;
};

// Deletes what the plan says, then sweeps the blobs. Lists the manifests again before the first
// deletion: a manifest that was published again or tagged since the plan was made stays, and so do
// its subject and its referrers. Deletes referrers before their subject, and checks the subject
// (Store::CheckUnchanged()) before the first of them. A manifest that cannot be deleted is reported
// and keeps its blobs; the others are deleted nevertheless.
// Errors: UNIMPLEMENTED, at the first deletion, if the registry does not allow it; those of
// Store::SweepBlobs().
absl::StatusOr<SweepReport> CollectRepository(Store& store, const GcRun& run, std::stop_token stop);

}  // namespace cachewarm::bundle
