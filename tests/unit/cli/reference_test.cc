// SPDX-License-Identifier: Apache-2.0
#include "cli/reference.h"

#include "gtest/gtest.h"

namespace cachewarm::cli {
namespace {

TEST(Reference, ParsesStoreRepositoryAndBundle) {
  const std::string hex(64, 'a');
  const struct {
    std::string text;
    std::string store;
    std::string repository;
    std::string tag;
    std::string digest;
  } cases[] = {
      {"oci://ghcr.io/org/llama:k-1", "oci://ghcr.io", "org/llama", "k-1", ""},
      {"oci://10.0.0.1:5000/llama", "oci://10.0.0.1:5000", "llama", "", ""},
      {"oci://ghcr.io/llama@sha256:" + hex, "oci://ghcr.io", "llama", "", "sha256:" + hex},
      {"layout:///srv/bundles/llama:k-1", "layout:///srv/bundles", "llama", "k-1", ""},
      {"layout:///srv/a:b/llama", "layout:///srv/a:b", "llama", "", ""},
  };
  for (const auto& c : cases) {
    const auto reference = Reference::Parse(c.text);
    ASSERT_TRUE(reference.ok()) << reference.status();
    EXPECT_EQ(reference->store_url, c.store);
    EXPECT_EQ(reference->repository, c.repository);
    EXPECT_EQ(reference->tag, c.tag);
    EXPECT_EQ(reference->digest.ToString(), c.digest);
  }
}

TEST(Reference, RejectsMalformedText) {
  for (const std::string text :
       {"", "llama", "https://ghcr.io/llama", "oci://ghcr.io", "oci://ghcr.io/", "oci:///llama",
        "layout://llama", "layout:///", "oci://ghcr.io/LLAMA",
        "oci://ghcr.io/llama:", "oci://ghcr.io/llama:a b", "oci://ghcr.io/llama@sha256:12",
        "oci://ghcr.io/llama@md5:12", "oci://u:p@ghcr.io/llama"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Reference::Parse(text).status())) << text;
  }
}

}  // namespace
}  // namespace cachewarm::cli
