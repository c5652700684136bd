// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "lib/bundle/store/layout/layout_store.h"
#include "lib/bundle/transfer.h"
#include "tests/unit/lib/bundle/trees.h"

// Bundles in an image layout, written without threads, and invariants of the directory.
namespace cachewarm::bundle {

inline constexpr char kRepository[] = "team/llama";
inline constexpr char kTag[] = "k-1";

// Writes a blob in five parts, so that a writer can be killed between them.
inline absl::Status WriteInPieces(Store& store, std::string_view bytes) {
  const auto upload = store.StartBlob(kRepository, {});
  if (!upload.ok()) {
    return upload.status();
  }
  const size_t piece = bytes.size() / 5 + 1;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    if (absl::Status written = (*upload)->Write(bytes.substr(at, piece)); !written.ok()) {
      return written;
    }
  }
  return (*upload)->Commit().status();
}

inline absl::Status WriteSample(Store& store, const PackedSample& sample) {
  absl::Status status = WriteInPieces(store, sample.layer);
  if (status.ok()) {
    status = WriteInPieces(store, sample.packed.config_text);
  }
  return status.ok()
             ? store.WriteManifest(kRepository, sample.packed.manifest_text, kTag, {}).status()
             : status;
}

// Checks that every blob matches its name, and that the tag leads to a complete bundle.
inline void ExpectWholeBundle(const std::string& directory, const std::string& when) {
  LayoutStore store(directory, SystemClock());
  const auto dir = fs::Dir::Open(directory + "/" + kRepository);
  ASSERT_TRUE(dir.ok()) << when << dir.status();
  EXPECT_TRUE(fs::Walk(*dir, "blobs/sha256", {},
                       [&](const fs::WalkEntry& entry) {
                         const auto bytes =
                             fs::ReadFile(*dir, "blobs/sha256/" + entry.path, 64LL << 20);
                         EXPECT_TRUE(bytes.ok() && DigestOf(*bytes).hex() == entry.path) << when;
                         return fs::WalkNext::kContinue;
                       })
                  .ok())
      << when;
  const auto digest = store.ResolveTag(kRepository, kTag, {});
  ASSERT_TRUE(digest.ok()) << when << digest.status();
  const auto bundle = ReadBundle({store, kRepository}, *digest, {});
  ASSERT_TRUE(bundle.ok()) << when << bundle.status();
  const absl::Status whole = Verify({store, kRepository}, *bundle, {}, {});
  EXPECT_TRUE(whole.ok()) << when << whole;
}

// Checks that only blobs, index.json, oci-layout and the lock exist.
inline void ExpectNoExtraFiles(const std::string& directory, const std::string& when) {
  const auto dir = fs::Dir::Open(directory + "/" + kRepository);
  ASSERT_TRUE(dir.ok()) << dir.status();
  EXPECT_TRUE(fs::Walk(*dir, "", {}, [&](const fs::WalkEntry& entry) {
                const bool is_expected = entry.path == "index.json" || entry.path == "oci-layout" ||
                                         entry.path == ".index.lock" ||
                                         entry.path.starts_with("blobs/sha256/");
                EXPECT_TRUE(is_expected || entry.stat.type == fs::FileType::kDirectory)
                    << when << ": " << entry.path;
                return fs::WalkNext::kContinue;
              }).ok());
}

}  // namespace cachewarm::bundle
