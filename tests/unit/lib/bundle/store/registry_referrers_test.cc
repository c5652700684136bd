// SPDX-License-Identifier: Apache-2.0
// Lists of referrers, with the responses of different registries.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/referrers/listing.h"
#include "lib/bundle/store/layout/index.h"
#include "lib/bundle/store/registry/referrer_list.h"
#include "tests/unit/lib/bundle/store/registry_fixture.h"

namespace cachewarm::bundle {
namespace {

using ::testing::HasSubstr;

constexpr char kType[] = "application/vnd.example.note";

Descriptor Named(const std::string& name) {
  return {.media_type = std::string(kManifestType), .digest = DigestOf(name), .bytes = 7};
}

Artifact About(const std::string& subject) {
  return {.type = kType,
          .config = Named("config"),
          .layers = {Named("layer")},
          .subject = Named(subject)};
}

http::Response Page(const std::string& body, const std::string& link = "") {
  http::Response page{
      .status = 200, .headers = {{"Content-Type", std::string(kIndexType)}}, .body = body};
  if (!link.empty()) {
    page.headers.Set("Link", link);
  }
  return page;
}

class RegistryReferrers : public RegistryTest {
 protected:
  void Answer(const http::Response& response) {
    http_->Then([response](const http::Request&) { return response; });
  }
  auto Ask() { return store_->Referrers(kRepository, DigestOf("subject"), kType, {}); }
  const std::string one_ = *AddToListing("", Named("one"), About("subject"));
  const std::string two_ = *AddToListing("", Named("two"), About("subject"));
};

TEST_F(RegistryReferrers, AreReadPageByPage) {
  Answer(Page(one_, R"(</v2/base/team/llama/referrers/x?n=1>; rel="next")"));
  Answer(Page(two_));
  const auto found = Ask();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found, ::testing::ElementsAre(Named("one"), Named("two")));
  EXPECT_THAT(Sent(0).url, HasSubstr("/v2/base/team/llama/referrers/sha256:"));
  EXPECT_THAT(Sent(0).url, HasSubstr("?artifactType=application%2Fvnd.example.note"));
  EXPECT_EQ(Sent(1).url, "http://registry.test:5000/v2/base/team/llama/referrers/x?n=1");
}

TEST_F(RegistryReferrers, RejectsPageOnAnotherServer) {
  Answer(Page(one_, R"(<http://evil.test/v2/>; rel="next")"));
  EXPECT_TRUE(absl::IsInvalidArgument(Ask().status()));
  EXPECT_EQ(http_->requests().size(), 1U);
}

TEST_F(RegistryReferrers, RejectsEndlessList) {
  for (int i = 0; i < 100; ++i) {
    Answer(Page(one_, R"(<?more>; rel="next")"));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Ask().status()));
}

TEST_F(RegistryReferrers, UsesTagWithoutTheApi) {
  const http::Response refusals[] = {
      {.status = 404},
      {.status = 400},
      {.status = 405},
      {.status = 406},
      {.status = 200, .headers = {{"Content-Type", "text/html"}}, .body = "<html>"}};
  size_t sent = 0;
  for (const http::Response& refusal : refusals) {
    Answer(refusal);
    Answer(Page(one_));
    const auto found = Ask();
    ASSERT_TRUE(found.ok()) << refusal.status << found.status();
    EXPECT_THAT(*found, ::testing::ElementsAre(Named("one"))) << refusal.status;
    EXPECT_THAT(Sent(sent + 1).url, HasSubstr("/manifests/sha256-"));
    sent += 2;
  }
}

TEST_F(RegistryReferrers, AreEmptyWithoutTag) {
  Answer({.status = 404});
  Answer({.status = 404});
  EXPECT_TRUE(Ask()->empty());
}

TEST_F(RegistryReferrers, FailingRegistryIsNotAnEmptyList) {
  Answer({.status = 500});
  EXPECT_TRUE(IsRetryable(Ask().status()));
  Answer({.status = 404});
  Answer({.status = 502});
  EXPECT_TRUE(IsRetryable(Ask().status()));
  Answer(Page("not json"));
  EXPECT_FALSE(Ask().ok());
}

TEST_F(RegistryReferrers, WriteAddsToTheListOfTheTag) {
  const std::string bytes = *WriteArtifact(About("subject"));
  Answer({.status = 201});  // the manifest
  Answer({.status = 404});  // no referrers API
  Answer(Page(one_));
  Answer({.status = 201});
  Answer(Page(one_));  // a concurrent writer replaced the list
  Answer({.status = 201});
  Answer(Page(*AddToListing(
      one_, {.media_type = std::string(kManifestType), .digest = DigestOf(bytes), .bytes = 1},
      About("subject"))));
  const auto written = store_->WriteReferrer(kRepository, bytes, {});
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(*written, DigestOf(bytes));
  EXPECT_EQ(Sent(3).method, http::Method::kPut);
  EXPECT_THAT(Sent(3).body, HasSubstr(DigestOf("one").hex()));
  EXPECT_THAT(Sent(3).body, HasSubstr(written->hex()));
}

TEST_F(RegistryReferrers, ConcurrentWritersAreUnavailable) {
  Answer({.status = 201});
  Answer({.status = 404});
  for (int i = 0; i < 10; ++i) {
    Answer(Page(one_));
    Answer({.status = 201});
  }
  const auto written = store_->WriteReferrer(kRepository, *WriteArtifact(About("subject")), {});
  EXPECT_TRUE(absl::IsUnavailable(written.status())) << written.status();
}

TEST_F(RegistryReferrers, WriteNeedsNoTagWithTheApi) {
  Answer({.status = 201});
  Answer(Page(one_));
  EXPECT_TRUE(store_->WriteReferrer(kRepository, *WriteArtifact(About("subject")), {}).ok());
  EXPECT_EQ(http_->requests().size(), 2U);
}

TEST(NextPage, IsFoundInALinkHeader) {
  const std::string url = "https://registry.test/v2/a/referrers/x";
  const struct {
    std::string link;
    std::string next;
  } cases[] = {
      {"", ""},
      {R"(<https://registry.test/v2/next>; rel="next")", "https://registry.test:443/v2/next"},
      {R"(</v2/next?a=b>;rel="next")", "https://registry.test:443/v2/next?a=b"},
      {R"(</v2/previous>; rel="prev")", ""},
      {R"(><; rel="next")", ""},
      {R"(no link; rel="next")", ""}};
  for (const auto& c : cases) {
    const auto next = NextPage(c.link, url);
    ASSERT_TRUE(next.ok()) << c.link;
    EXPECT_EQ(next->value_or(""), c.next) << c.link;
  }
}

}  // namespace
}  // namespace cachewarm::bundle
