// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/describe.h"

#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/caches/kind.h"

namespace cachewarm::caches {
namespace {

bool MayBeLinked(const FileRow& row) {
  return row.hard_link && !row.writable;
}

// Describes, for users, which captured files of the kind may be hard-linked between generations.
std::string LinksOf(const CacheKind& kind) {
  std::vector<std::string_view> copied;
  size_t captured = 0;
  for (const FileRow& row : kind.files) {
    if (row.skip == Skip::kNo) {
      ++captured;
      if (!MayBeLinked(row)) {
        copied.push_back(row.glob);
      }
    }
  }
  if (copied.empty()) {
    return "All files.";
  }
  return copied.size() == captured ? "None: every generation has its own copy."
                                   : fmt::format("All files except {}.", fmt::join(copied, ", "));
}

// Returns a phrase such as "triton in triton_version of */*.json".
std::string DescribeVersion(const VersionRow& row, std::string_view root) {
  std::string files = fmt::format("{}{}", root, row.glob);
  switch (row.place) {
    case VersionRow::Place::kPath:
      return fmt::format("{} in component {} of {}", row.engine,
                         row.component + 1 + std::count(root.begin(), root.end(), '/'), files);
    case VersionRow::Place::kJsonMember:
    case VersionRow::Place::kPickledMember:
      return fmt::format("{} in {} of {}", row.engine, row.before, files);
    case VersionRow::Place::kPickledFirst:
      return fmt::format("{} in the first object of {}", row.engine, files);
  }
  return files;
}

KindDescription Describe(const CacheKind& kind) {
  const KindFacts& facts = kind.facts;
  KindDescription description{.name = std::string(kind.name),
                              .directory = std::string(kind.path),
                              .variables = {},
                              .strict = {},
                              .opt_in = std::string(kind.opt_in),
                              .engine = std::string(facts.engine),
                              .proof = std::string(facts.proof),
                              .absolute_paths = std::string(facts.absolute_paths),
                              .rewritten = {},
                              .hit = std::string(facts.hit),
                              .miss = std::string(facts.miss),
                              .autotune = {},
                              .links = LinksOf(kind),
                              .captured = {},
                              .batons = {},
                              .skipped = {},
                              .versions = {}};
  for (const EnvRow& row : kind.env) {
    description.variables.push_back(fmt::format("{}={}", row.name, row.value));
  }
  for (const EnvRow& row : kind.strict) {
    description.strict.push_back(fmt::format("{}={}", row.name, row.value));
  }
  const std::string root = kind.root.empty() ? "" : fmt::format("{}/", kind.root);
  for (const NestedRow& nested : kind.nested) {
    description.captured.push_back(fmt::format("{}{}/: {}", root, nested.directory, nested.kind));
  }
  for (const FileRow& row : kind.files) {
    const std::string glob = fmt::format("{}{}", root, row.glob);
    if (row.skip == Skip::kNo) {
      description.captured.push_back(glob);
      if (row.own_paths) {
        description.rewritten.push_back(glob);
      }
      if (row.autotune) {
        description.autotune.push_back(glob);
      }
    } else {
      description.skipped.push_back(fmt::format("{}: {}", glob, SkipName(row.skip)));
    }
  }
  for (const std::string_view glob : kind.batons) {
    description.batons.push_back(fmt::format("{}{}", root, glob));
  }
  for (const VersionRow& row : kind.versions) {
    description.versions.push_back(DescribeVersion(row, root));
  }
  return description;
}

}  // namespace

std::vector<KindDescription> DescribeKinds() {
  std::vector<KindDescription> descriptions;
  descriptions.reserve(AllKinds().size());
  std::transform(AllKinds().begin(), AllKinds().end(), std::back_inserter(descriptions), Describe);
  return descriptions;
}

}  // namespace cachewarm::caches
