// SPDX-License-Identifier: Apache-2.0
// Lists and deletions, with the responses of different registries.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/referrers/listing.h"
#include "lib/bundle/store/key_tag.h"
#include "tests/unit/lib/bundle/store/registry_fixture.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kKeyTag = KeyTagOf(std::string(64, 'a'));

class RegistryCollect : public RegistryTest {
 protected:
  std::vector<std::string> Asked() {
    std::vector<std::string> asked;
    for (const http::Request& request : http_->requests()) {
      asked.push_back(fmt::format("{} {}", http::MethodName(request.method),
                                  request.url.substr(std::string(kOrigin).size())));
    }
    return asked;
  }
};

TEST_F(RegistryCollect, CatalogIsReadPageByPageAndLimitedToTheBase) {
  http_->ThenRespond(200, R"({"repositories":["base/team/qwen","other/x","base"]})",
                     {{"Link", R"(</v2/_catalog?last=base&n=1000>; rel="next")"}});
  http_->ThenRespond(200, R"({"repositories":["base/team/llama"]})");
  const auto listed = store_->ListRepositories({});
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_THAT(*listed, ElementsAre("team/llama", "team/qwen"));
  EXPECT_THAT(Asked(), ElementsAre("GET /v2/_catalog?n=1000", "GET /v2/_catalog?last=base&n=1000"));
}

TEST_F(RegistryCollect, CatalogThatIsNotShownIsUnimplemented) {
  for (const int status : {400, 401, 403, 404, 405}) {
    http_->ThenRespond(status, R"({"errors":[{"code":"UNSUPPORTED","message":"no"}]})");
    const auto listed = store_->ListRepositories({});
    EXPECT_TRUE(absl::IsUnimplemented(listed.status())) << status << listed.status();
  }
  http_->Otherwise([](const http::Request&) { return http::Response{.status = 500}; });
  EXPECT_TRUE(IsRetryable(store_->ListRepositories({}).status()));
}

TEST_F(RegistryCollect, EndlessListsAreRefused) {
  http_->Otherwise([](const http::Request&) {
    return http::Response{.status = 200,
                          .headers = {{"Link", R"(</v2/_catalog?again>; rel="next")"}},
                          .body = R"({"repositories":null})"};
  });
  EXPECT_TRUE(absl::IsResourceExhausted(store_->ListRepositories({}).status()));
  http_->Otherwise([](const http::Request&) {
    return http::Response{.status = 200,
                          .headers = {{"Link", R"(<http://other.test/v2/x>; rel="next")"}},
                          .body = R"({"tags":["a"]})"};
  });
  EXPECT_TRUE(absl::IsInvalidArgument(store_->ListManifests(kRepository, {}).status()));
  http_->Otherwise([](const http::Request&) {
    return http::Response{.status = 200, .body = R"({"tags":[1]})"};
  });
  EXPECT_TRUE(absl::IsInvalidArgument(store_->ListManifests(kRepository, {}).status()));
}

TEST_F(RegistryCollect, ListingResolvesTagsAndOmitsReferrerLists) {
  const WallTime time{std::chrono::seconds(1'796'000'000)};
  const std::string dated = DatedTag(kKeyTag, DigestOf("one"), time);
  http_->ThenRespond(200, fmt::format(R"({{"tags":["v1","{}","{}","deleted","../x"]}})", dated,
                                      ListingTag(DigestOf("one"))));
  http_->ThenRespond(404, "");
  http_->ThenRespond(200, "one");
  http_->ThenRespond(200, "one");
  const auto listed = store_->ListManifests(kRepository, {});
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_FALSE(listed->complete);
  EXPECT_THAT(listed->manifests,
              ElementsAre(StoredManifest{
                  .digest = DigestOf("one"), .tags = {dated, "v1"}, .published = time}));
}

TEST_F(RegistryCollect, ABundleOfAKeyGetsATagOfItsOwn) {
  const std::string bytes = PackTree({{"a", {.content = "x"}}}).packed.manifest_text;
  const std::string manifests = "/v2/base/team/llama/manifests/";
  http_->ThenRespond(404, "");
  http_->Otherwise([](const http::Request&) { return http::Response{.status = 201}; });
  ASSERT_TRUE(store_->WriteManifest(kRepository, bytes, kKeyTag, {}).ok());
  // The clock of the fixture stands at the epoch. The tag of the key is moved last.
  EXPECT_THAT(Asked(), ElementsAre("GET " + manifests + kKeyTag,
                                   "PUT " + manifests + kKeyTag + "-19700101T000000Z-" +
                                       DigestOf(bytes).Short(),
                                   "PUT " + manifests + kKeyTag));
}

TEST_F(RegistryCollect, ACurrentBundleAndOtherTagsGetNoSecondTag) {
  const std::string bytes = PackTree({{"a", {.content = "x"}}}).packed.manifest_text;
  http_->ThenRespond(200, bytes);
  http_->Otherwise([](const http::Request&) { return http::Response{.status = 201}; });
  ASSERT_TRUE(store_->WriteManifest(kRepository, bytes, kKeyTag, {}).ok());
  ASSERT_TRUE(store_->WriteManifest(kRepository, bytes, "v1", {}).ok());
  const std::string manifests = "/v2/base/team/llama/manifests/";
  EXPECT_THAT(Asked(), ElementsAre("GET " + manifests + kKeyTag, "PUT " + manifests + kKeyTag,
                                   "PUT " + manifests + "v1"));
}

TEST_F(RegistryCollect, DeletionIsByDigestAndRemovesTheListOfReferrers) {
  const Digest digest = DigestOf("gone");
  http_->ThenRespond(202, "");
  http_->ThenRespond(200, "list");
  http_->ThenRespond(202, "");
  EXPECT_TRUE(store_->DeleteManifest(kRepository, {.digest = digest, .tags = {"v1"}}, {}).ok());
  const std::string manifests = "/v2/base/team/llama/manifests/";
  EXPECT_THAT(Asked(), ElementsAre("DELETE " + manifests + digest.ToString(),
                                   "GET " + manifests + ListingTag(digest),
                                   "DELETE " + manifests + DigestOf("list").ToString()));
}

TEST_F(RegistryCollect, DeletionThatIsNotSupportedIsUnimplemented) {
  const StoredManifest listed{.digest = DigestOf("stays")};
  http_->ThenRespond(405, R"({"errors":[{"code":"UNSUPPORTED","message":"disabled"}]})");
  const absl::Status refused = store_->DeleteManifest(kRepository, listed, {});
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("disabled"));
  http_->ThenRespond(400, R"({"errors":[{"code":"UNSUPPORTED"}]})");
  EXPECT_TRUE(absl::IsUnimplemented(store_->DeleteManifest(kRepository, listed, {})));
  http_->ThenRespond(403, "");
  EXPECT_TRUE(absl::IsPermissionDenied(store_->DeleteManifest(kRepository, listed, {})));
}

}  // namespace
}  // namespace cachewarm::bundle
