// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/capturing/publication.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "lib/base/status.h"
#include "lib/bundle/signature/signature.h"
#include "lib/bundle/store/key_tag.h"
#include "lib/capture/bundle_parts.h"
#include "lib/capture/selection.h"
#include "lib/fingerprint/key.h"
#include "lib/fs/file.h"

namespace cachewarm::agent {
absl::Status CheckRequest(const api::CaptureRequest& request, const fingerprint::NodeFacts& node) {
  CW_ASSIGN_OR_RETURN(const std::string key, fingerprint::KeyOf(request.factors));
  if (key != request.key) {
    return absl::FailedPreconditionError(
        "the key does not match its factors: operator and agent have different versions; upgrade "
        "the older one");
  }
  if (request.factors.gpu_type != node.gpu_type || request.factors.cpu_class != node.cpu_class) {
    return absl::FailedPreconditionError(fmt::format(
        "the request is for GPU type {} and CPU class {}, but this node is {} and {}",
        request.factors.gpu_type, request.factors.cpu_class, node.gpu_type, node.cpu_class));
  }
  return absl::OkStatus();
}

std::vector<capture::TreeFile> FilterUsed(std::vector<capture::TreeFile> files,
                                          const caches::CacheTable& table, const UsedFiles& used) {
  if (used.all) {
    return files;
  }
  std::vector<std::string> present;
  present.reserve(files.size());
  for (const capture::TreeFile& file : files) {
    present.push_back(file.path);
  }
  const auto selected = table.SelectUsed(present, used.paths);
  const std::set<std::string, std::less<>> keep(selected.begin(), selected.end());
  std::erase_if(files, [&](const capture::TreeFile& file) { return !keep.contains(file.path); });
  return files;
}

namespace {

// Removes the files that no running pod used and whose unit it did not use either. FilterUsed()
// also selects the kinds that a capture takes without a file event (Placement::always) and their
// units; in the tree of a harvest these may be of a start that failed.
void RemoveUnused(const UsedFiles& used, std::vector<capture::TreeFile>& files) {
  std::set<std::string> units;
  for (const capture::TreeFile& file : files) {
    if (!file.placement.unit.empty() && used.paths.contains(file.path)) {
      units.insert(file.placement.unit);
    }
  }
  std::erase_if(files, [&](const capture::TreeFile& file) {
    return !used.paths.contains(file.path) && !units.contains(file.placement.unit);
  });
}

// Returns the base: an older bundle whose layers the new bundle shares, so that only the difference
// is pushed. The base is the previous bundle of the key, else another bundle of the warmup. Skips
// bundles that are missing, damaged or of another format. Without a base, the new bundle contains
// everything itself.
absl::StatusOr<std::optional<bundle::Bundle>> FindBase(const bundle::RepositoryRef& place,
                                                       const PublishJob& job,
                                                       const std::string& tag,
                                                       const std::stop_token& stop) {
  std::vector<Digest> candidates = job.older;
  absl::StatusOr<Digest> tagged = place.store.ResolveTag(place.repository, tag, stop);
  if (tagged.ok()) {
    candidates.insert(candidates.begin(), *std::move(tagged));
  } else if (!absl::IsNotFound(tagged.status())) {
    return tagged.status();
  }
  for (const Digest& digest : candidates) {
    absl::StatusOr<bundle::Bundle> base = bundle::ReadBundle(place, digest, stop);
    if (base.ok()) {
      return *std::move(base);
    }
    if (!absl::IsNotFound(base.status()) && !absl::IsInvalidArgument(base.status()) &&
        !absl::IsDataLoss(base.status())) {
      return base.status();
    }
  }
  return std::nullopt;
}

// Reads the bundle whose files the new bundle must contain too (request.base_digest). Unlike the
// result of FindBase(), this bundle is never skipped: without it, the files of the other ranks
// (pods of one distributed server) would be missing.
absl::StatusOr<bundle::Bundle> ReadBundleToKeep(const bundle::RepositoryRef& place,
                                                const PublishJob& job,
                                                const std::stop_token& stop) {
  const Digest& digest = job.request.base_digest;
  absl::StatusOr<bundle::Bundle> previous = bundle::ReadBundle(place, digest, stop);
  if (previous.ok() && previous->config.facts.key != job.request.key) {
    return absl::FailedPreconditionError(fmt::format(
        "bundle {}, which the new bundle must extend, has another key", digest.Short()));
  }
  if (absl::IsNotFound(previous.status()) || absl::IsInvalidArgument(previous.status()) ||
      absl::IsDataLoss(previous.status())) {
    return absl::FailedPreconditionError(
        fmt::format("cannot read bundle {}, which the new bundle must extend: {}", digest.Short(),
                    Message(previous.status())));
  }
  return previous;
}

absl::StatusOr<std::optional<bundle::Bundle>> BaseOf(const bundle::RepositoryRef& place,
                                                     const PublishJob& job, const std::string& tag,
                                                     const std::stop_token& stop) {
  if (job.request.base_digest.empty()) {
    return FindBase(place, job, tag, stop);
  }
  CW_ASSIGN_OR_RETURN(bundle::Bundle previous, ReadBundleToKeep(place, job, stop));
  return previous;
}

// True if the tree has other bytes at the path of the bundle's entry.
absl::StatusOr<bool> Differs(const PublishJob& job, const capture::TreeFile& file,
                             const bundle::Entry& entry) {
  if (file.stat.bytes != entry.bytes) {
    return true;
  }
  if (job.on_opening) {
    job.on_opening(file.path);
  }
  CW_ASSIGN_OR_RETURN(const std::string bytes, fs::ReadFile(job.tree, file.path, entry.bytes));
  return DigestOf(bytes) != entry.digest;
}

// Removes the sets of autotune results of which the bundle has other bytes at a common path: they
// are of another tuning, and a mix of two can hang an engine
// (docs/design/0028-autotune-results-of-one-generation.md).
absl::Status RemoveOtherTunings(const PublishJob& job, const bundle::Bundle& base,
                                std::vector<capture::TreeFile>& files) {
  std::map<std::string_view, const bundle::Entry*> entries;
  for (const bundle::Entry& entry : base.config.entries) {
    entries.emplace(entry.path, &entry);
  }
  std::set<std::string> others;
  for (const capture::TreeFile& file : files) {
    const auto entry = entries.find(file.path);
    const std::string& set = file.placement.autotune_set;
    if (set.empty() || entry == entries.end() || others.contains(set)) {
      continue;
    }
    CW_ASSIGN_OR_RETURN(const bool differs, Differs(job, file, *entry->second));
    if (differs) {
      others.insert(set);
    }
  }
  std::erase_if(files,
                [&](const auto& file) { return others.contains(file.placement.autotune_set); });
  return absl::OkStatus();
}

// Checks the base of a harvest, and removes the files that may not be added to it.
absl::Status PrepareHarvest(const PublishJob& job, const bundle::Bundle& base,
                            std::vector<capture::TreeFile>& files) {
  if (base.manifest.layers.size() >= size_t{bundle::kLayersMax}) {
    return absl::FailedPreconditionError(
        fmt::format("the bundle has {} layers, the most that a bundle may have; a new build of it "
                    "has fewer",
                    base.manifest.layers.size()));
  }
  CW_RETURN_IF_ERROR(RemoveOtherTunings(job, base, files));
  // Engines rewrite some files at each use (FileRow::in_place). The bundle keeps those of its
  // build; else all nodes would fetch a layer that has nothing new.
  std::set<std::string_view> present;
  for (const bundle::Entry& entry : base.config.entries) {
    present.insert(entry.path);
  }
  std::erase_if(files, [&](const auto& file) { return present.contains(file.path); });
  return absl::OkStatus();
}

// Returns the result of a harvest that adds nothing.
Published Unchanged(const bundle::Bundle& base) {
  return {.publication = {.digest = base.digest,
                          .bytes = bundle::PackedBytes(base.manifest),
                          .files = static_cast<int64_t>(base.config.entries.size())},
          .native = base.config.facts.requires_cpu_class};
}

// Returns the facts of the new bundle. With a base_digest, the new bundle also contains the files
// of that bundle, so the facts of both are united.
bundle::Facts FactsOf(const PublishJob& job, const capture::Selection& selection,
                      const std::optional<bundle::Bundle>& base) {
  bundle::Facts own = capture::FactsOf(
      {.key = job.request.key, .factors = job.request.factors, .node = job.node}, selection);
  own.engine_factors = job.engine_factors;
  return job.request.base_digest.empty() ? own : capture::UniteFacts(base->config.facts, own);
}

}  // namespace

absl::StatusOr<Published> PublishTree(const PublishJob& job, std::stop_token stop) {
  CW_RETURN_IF_ERROR(CheckRequest(job.request, job.node));
  // Read the private key first. If it cannot be read, the call fails here, before it publishes a
  // bundle that cannot be signed.
  std::optional<bundle::PrivateKey> key;
  if (!job.private_key_file.empty()) {
    CW_ASSIGN_OR_RETURN(key, bundle::ReadPrivateKey(job.private_key_file));
  }
  CW_ASSIGN_OR_RETURN(capture::TreeListing observed, capture::ListTree(job.tree, job.table));
  std::vector<capture::TreeFile> used = FilterUsed(std::move(observed.files), job.table, job.used);
  if (!job.request.generation.empty()) {
    RemoveUnused(job.used, used);
  }
  if (job.request.grouped) {
    std::erase_if(used, [](const auto& file) { return !file.placement.autotune_set.empty(); });
  }
  CW_ASSIGN_OR_RETURN(
      capture::Selection selection,
      capture::SelectFiles(std::move(used), {.tree = job.tree, .on_opening = job.on_opening}));
  if (selection.files.empty()) {
    return absl::NotFoundError(selection.truncated.empty()
                                   ? "the builder used no file matching spec.caches"
                                   : fmt::format("the builder left only truncated files: {}",
                                                 selection.truncated.front()));
  }
  const bundle::RepositoryRef place{.store = job.store,
                                    .repository = fmt::format("{}/{}", job.ns, job.name)};
  const std::string tag = bundle::KeyTagOf(job.request.key);
  CW_ASSIGN_OR_RETURN(const std::optional<bundle::Bundle> base, BaseOf(place, job, tag, stop));
  if (!job.request.generation.empty()) {
    if (!base.has_value() || job.request.base_digest.empty()) {
      return absl::FailedPreconditionError("a harvest needs the bundle that it extends");
    }
    CW_RETURN_IF_ERROR(PrepareHarvest(job, *base, selection.files));
    if (selection.files.empty()) {
      return Unchanged(*base);
    }
  }
  const bundle::Facts facts = FactsOf(job, selection, base);
  CW_ASSIGN_OR_RETURN(
      bundle::Publication publication,
      bundle::Publish(
          place, capture::PackFilesOf(selection, {.tree = job.tree, .on_opening = job.on_opening}),
          facts,
          {.tag = tag,
           .pack = {.threads = job.threads,
                    .base = base.has_value() ? &*base : nullptr,
                    .keep_base = !job.request.base_digest.empty()}},
          stop));
  if (key.has_value()) {
    CW_RETURN_IF_ERROR(bundle::Sign(place, publication.digest, *key, std::move(stop)).status());
  }
  return Published{.publication = std::move(publication),
                   .native = facts.requires_cpu_class,
                   .stored_compile_seconds = selection.compile_time.Seconds(),
                   .truncated = selection.truncated,
                   .left_behind = std::move(observed.unnamed)};
}

}  // namespace cachewarm::agent
