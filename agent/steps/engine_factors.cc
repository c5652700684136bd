// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/engine_factors.h"

#include <optional>

#include "agent/evidence/events.h"
#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "lib/base/status.h"
#include "lib/fs/file.h"

namespace cachewarm::agent {
namespace {

constexpr int64_t kSaltBytesMax = 4096;

absl::StatusOr<capture::EngineFactors> ReadFactors(const Context& context,
                                                   const std::string& generation, WallTime begin,
                                                   WallTime end) {
  CW_ASSIGN_OR_RETURN(const std::string salt,
                      fs::ReadNamedFile(context.factor_salt_file, kSaltBytesMax));
  CW_ASSIGN_OR_RETURN(const fs::Dir tree, context.root.OpenDir(GenerationPath(generation)));
  OwnReads own_reads = context.watcher.BeginOwnReads(generation);
  return capture::ReadEngineFactors(tree, begin, end, salt,
                                    [&](const std::string& path) { own_reads.Opening(path); });
}

}  // namespace

capture::EngineFactors EngineFactorsIn(const Context& context, const std::string& generation,
                                       WallTime begin, WallTime end) {
  if (context.factor_salt_file.empty()) {
    return {};
  }
  absl::StatusOr<capture::EngineFactors> factors = ReadFactors(context, generation, begin, end);
  if (factors.ok()) {
    return *std::move(factors);
  }
  // The operator has not made the salt yet, or the engine wrote no file.
  if (!absl::IsNotFound(factors.status())) {
    context.log.Warning("cannot read the key factors of the engine",
                        {{"generation", generation}, {"err", Message(factors.status())}});
  }
  return {};
}

std::vector<std::string> DifferingKeyFactors(const Context& context, const std::string& generation,
                                             const api::StartWindow& window) {
  const absl::StatusOr<GenerationRecord> record = ReadGenerationRecord(context.root, generation);
  // If a bundle has no factors, the start may have missed that one: a comparison with another
  // bundle, such as that of an earlier image, would name parts that are not the cause.
  if (!record.ok() || record->engine_factors.empty() ||
      record->engine_factors.size() < record->digests.size()) {
    return {};
  }
  const capture::EngineFactors own =
      EngineFactorsIn(context, generation, WindowBegin(window), WindowEnd(window));
  std::optional<std::vector<std::string>> least;
  for (const BundleEngineFactors& bundle : record->engine_factors) {
    std::vector<std::string> names = capture::DifferingFactors(bundle.factors, own);
    if (!least.has_value() || names.size() < least->size()) {
      least = std::move(names);
    }
  }
  return *std::move(least);
}

}  // namespace cachewarm::agent
