// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "lib/fs/dir.h"
#include "lib/megacache/artifact.h"
#include "lib/megacache/kernels.h"
#include "lib/megacache/layout.h"
#include "lib/megacache/platform/boost/crc32.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {
namespace {

constexpr size_t kChecksumBytes = 4;

bool IsPart(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void CheckEntries(const std::vector<megacache::Entry>& entries, std::string_view bytes) {
  for (const megacache::Entry& entry : entries) {
    Require(IsPart(entry.content, bytes), "a content is a part of its artifact");
    const auto path = megacache::PathOf(entry);
    if (!path.ok()) {
      continue;
    }
    Require(fs::CheckRelativePath(*path).ok(), "a path stays below its directory");
    const auto name = megacache::NameOf(*path);
    Require(name.has_value() && name->type == entry.type, "a path names the type of its entry");
    const auto again = megacache::PathOf({name->type, name->key, entry.content});
    Require(again.ok() && *again == *path, "an exported entry gets the same path");
  }
  const megacache::KernelSources kernels(entries);
  for (const megacache::Entry& entry : entries) {
    const auto found = kernels.Find(entry.content);
    Require(!found.has_value() || *found < kernels.size(), "a kernel that is found is known");
  }
  static_cast<void>(megacache::PrecompilesHeaders(entries));
}

void ParseAndCheck(std::string_view bytes) {
  const auto entries = megacache::Parse(bytes, {.entries_max = 1000});
  if (!entries.ok()) {
    return;
  }
  CheckEntries(*entries, bytes);
  const std::string written = megacache::Write(*entries);
  const auto again = megacache::Parse(written, {.entries_max = 1000});
  Require(again.ok() && again->size() == entries->size(), "a written artifact can be read");
  Require(megacache::Write(*again) == written, "writing an artifact twice gives the same bytes");
}

}  // namespace

// An artifact of torch.compiler.save_cache_artifacts(), as it is and with a checksum that matches.
void Megacache(std::string_view bytes) {
  ParseAndCheck(bytes);
  if (bytes.size() < kChecksumBytes) {
    return;
  }
  std::string checked(bytes);
  const uint32_t checksum = megacache::Crc32(bytes.substr(kChecksumBytes));
  for (size_t i = 0; i < kChecksumBytes; ++i) {
    checked[i] = static_cast<char>(checksum >> (8 * (kChecksumBytes - 1 - i)));
  }
  ParseAndCheck(checked);
}

}  // namespace cachewarm::fuzz
