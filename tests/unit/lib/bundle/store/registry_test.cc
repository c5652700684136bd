// SPDX-License-Identifier: Apache-2.0
// Scripted responses of a registry. Tests with a real one are in tests/contract/store.
#include <memory>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "tests/unit/lib/bundle/store/registry_fixture.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using http::Headers;
using http::Request;
using http::Response;
using ::testing::HasSubstr;

TEST_F(RegistryTest, AnswersABasicChallengeAndKeepsTheAnswer) {
  http_->ThenRespond(401, "", {{"WWW-Authenticate", "Basic realm=\"x\""}})
      .ThenRespond(200, "")
      .ThenRespond(404, "");
  const Digest digest = DigestOf("x");
  EXPECT_TRUE(*store_->HasBlob(kRepository, digest, {}));
  EXPECT_FALSE(*store_->HasBlob(kRepository, digest, {}));
  EXPECT_EQ(HeaderSent(0, "Authorization"), "");
  EXPECT_EQ(HeaderSent(1, "Authorization"), "Basic d2FybTpzZWNyZXQ=");
  EXPECT_EQ(HeaderSent(2, "Authorization"), "Basic d2FybTpzZWNyZXQ=");
  EXPECT_EQ(Sent(0).url, kBlobUrl + digest.ToString());
}

TEST_F(RegistryTest, FetchesATokenForTheRightScope) {
  http_
      ->ThenRespond(401, "",
                    {{"WWW-Authenticate",
                      "Bearer realm=\"https://auth.test/token\",service=\"reg, istry\","
                      "scope=\"repository:base/team/llama:pull\""}})
      .ThenRespond(200, R"({"token":"abc.def","expires_in":60})")
      .ThenRespond(200, "");
  EXPECT_TRUE(*store_->HasBlob(kRepository, DigestOf("x"), {}));
  EXPECT_EQ(Sent(1).url,
            "https://auth.test:443/token?service=reg%2C%20istry&"
            "scope=repository%3Abase%2Fteam%2Fllama%3Apull");
  EXPECT_EQ(HeaderSent(1, "Authorization"), "Basic d2FybTpzZWNyZXQ=");
  EXPECT_EQ(HeaderSent(2, "Authorization"), "Bearer abc.def");
}

TEST_F(RegistryTest, FetchesNewTokenAfterExpiry) {
  const Headers challenge = {{"WWW-Authenticate", "Bearer realm=\"https://auth.test/token\""}};
  http_->ThenRespond(401, "", challenge)
      .ThenRespond(200, R"({"access_token":"first"})")
      .ThenRespond(200, "")
      .ThenRespond(401, "", challenge)
      .ThenRespond(200, R"({"access_token":"second"})")
      .ThenRespond(200, "");
  EXPECT_TRUE(*store_->HasBlob(kRepository, DigestOf("x"), {}));
  EXPECT_TRUE(*store_->HasBlob(kRepository, DigestOf("x"), {}));
  EXPECT_EQ(HeaderSent(5, "Authorization"), "Bearer second");
}

TEST_F(RegistryTest, RejectedLoginIsUnauthenticated) {
  const Headers challenge = {{"WWW-Authenticate", "Basic realm=\"x\""}};
  http_->ThenRespond(401, "", challenge)
      .ThenRespond(401, R"({"errors":[{"code":"UNAUTHORIZED","message":"wrong password"}]})",
                   challenge);
  const absl::Status status = store_->Ping({});
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("UNAUTHORIZED: wrong password"));
}

TEST_F(RegistryTest, RejectsMalformedTokens) {
  for (const std::string answer :
       {"", "{}", "[]", R"({"token":1})", R"({"token":"a\r\nb"})", R"({"token":""})"}) {
    http_->ThenRespond(401, "", {{"WWW-Authenticate", "Bearer realm=\"https://auth.test/t\""}})
        .ThenRespond(200, answer);
    EXPECT_FALSE(store_->Ping({}).ok()) << answer;
  }
}

TEST_F(RegistryTest, RejectsMalformedChallenges) {
  for (const std::string challenge : {"Bearer", "Bearer realm", "Bearer realm=\"open",
                                      "Bearer realm=\"ftp://x/\"", " ", "Bearer service=\"x\""}) {
    http_->ThenRespond(401, "", {{"WWW-Authenticate", challenge}});
    EXPECT_FALSE(store_->Ping({}).ok()) << challenge;
  }
  http_->ThenRespond(401, "", {{"WWW-Authenticate", "Negotiate abc=="}});
  EXPECT_FALSE(store_->Ping({}).ok());
}

TEST_F(RegistryTest, DownloadRequestsItsRange) {
  const std::string blob = Noise(1000, 1);
  http_->Then([&](const Request&) { return Partial(blob, 100); });
  ASSERT_TRUE(Read(DigestOf(blob), 900, 100).ok());
  EXPECT_EQ(text(), blob.substr(100));
  EXPECT_EQ(HeaderSent(0, "Range"), "bytes=100-999");
}

TEST_F(RegistryTest, DownloadHandlesServerWithoutRange) {
  const std::string blob = Noise(1000, 2);
  http_->ThenRespond(200, blob);
  ASSERT_TRUE(Read(DigestOf(blob), 300, 100).ok());
  EXPECT_EQ(text(), blob.substr(100, 300));
}

TEST_F(RegistryTest, DownloadResumesShortAnswer) {
  const std::string blob = Noise(1000, 3);
  http_
      ->Then([&](const Request&) {
        Response part = Partial(blob, 0);
        part.body.resize(400);
        return part;
      })
      .Then([&](const Request&) { return Partial(blob, 400); });
  ASSERT_TRUE(Read(DigestOf(blob), 1000).ok());
  EXPECT_EQ(text(), blob);
  EXPECT_EQ(HeaderSent(1, "Range"), "bytes=400-999");
}

TEST_F(RegistryTest, DownloadRetriesUnavailableServer) {
  const std::string blob = Noise(1000, 4);
  http_->ThenFail(absl::UnavailableError("refused"))
      .ThenRespond(503, "")
      .ThenFail(absl::DeadlineExceededError("slow"))
      .Then([&](const Request&) { return Partial(blob, 0); });
  EXPECT_TRUE(Read(DigestOf(blob), 1000).ok());
  EXPECT_EQ(text(), blob);
}

TEST_F(RegistryTest, DownloadFailsWithoutProgress) {
  http_->Otherwise([](const Request&) { return absl::UnavailableError("refused"); });
  EXPECT_TRUE(absl::IsUnavailable(Read(DigestOf("x"), 1)));
  EXPECT_EQ(http_->requests().size(), 4U);
}

TEST_F(RegistryTest, DownloadDoesNotRetryPermanentErrors) {
  for (const int code : {400, 403, 404}) {
    const size_t before = http_->requests().size();
    http_->ThenRespond(code, R"({"errors":[{"code":"X","message":"no"}]})");
    EXPECT_FALSE(IsRetryable(Read(DigestOf("x"), 1))) << code;
    EXPECT_EQ(http_->requests().size(), before + 1) << code;
  }
}

TEST_F(RegistryTest, RejectsWrongRange) {
  const std::string blob = Noise(1000, 5);
  http_->Otherwise([&](const Request&) { return Partial(blob, 10); });
  EXPECT_FALSE(Read(DigestOf(blob), 900, 100).ok());
  EXPECT_EQ(text(), "");
}

TEST_F(RegistryTest, RedirectGetsNoCredentials) {
  const std::string blob = Noise(1000, 6);
  http_->ThenRespond(401, "", {{"WWW-Authenticate", "Basic realm=\"x\""}})
      .ThenRespond(307, "", {{"Location", "https://bucket.test/blob?sig=1"}})
      .Then([&](const Request&) { return Partial(blob, 0); });
  ASSERT_TRUE(Read(DigestOf(blob), 1000).ok());
  EXPECT_EQ(HeaderSent(1, "Authorization"), "Basic d2FybTpzZWNyZXQ=");
  EXPECT_EQ(Sent(2).url, "https://bucket.test:443/blob?sig=1");
  EXPECT_EQ(HeaderSent(2, "Authorization"), "");
  EXPECT_EQ(HeaderSent(2, "Range"), "bytes=0-999");
}

TEST_F(RegistryTest, FollowsOnlyRedirects) {
  const std::string blob = Noise(100, 7);
  const Headers location = {{"Location", "https://bucket.test/blob"}};
  for (const int status : {301, 302, 303, 307, 308}) {
    http_->ThenRespond(status, "", location).Then([&](const Request&) { return Partial(blob, 0); });
    EXPECT_TRUE(Read(DigestOf(blob), 100).ok()) << status;
  }
  http_->Otherwise([&](const Request& request) -> absl::StatusOr<Response> {
    EXPECT_EQ(request.url.find("bucket.test"), std::string::npos) << request.url;
    return Response{.status = request.url.ends_with(DigestOf("300").ToString())   ? 300
                              : request.url.ends_with(DigestOf("304").ToString()) ? 304
                                                                                  : 309,
                    .headers = location};
  });
  for (const char* status : {"300", "304", "309"}) {
    EXPECT_FALSE(Read(DigestOf(status), 100).ok()) << status;
  }
}

TEST_F(RegistryTest, ChallengeOfAnotherHostGetsNoCredentials) {
  http_->ThenRespond(307, "", {{"Location", "https://bucket.test/blob"}})
      .ThenRespond(401, "", {{"WWW-Authenticate", "Basic realm=\"x\""}});
  EXPECT_TRUE(absl::IsUnauthenticated(Read(DigestOf("x"), 1)));
  for (const Request& request : http_->requests()) {
    EXPECT_FALSE(request.headers.Find("Authorization").has_value());
  }
}

TEST_F(RegistryTest, ErrorOmitsUrlSignature) {
  http_->ThenRespond(307, "", {{"Location", "https://bucket.test/blob?X-Signature=secret"}})
      .ThenRespond(403, "expired");
  const absl::Status refused = Read(DigestOf("x"), 1);
  EXPECT_EQ(refused,
            absl::PermissionDeniedError("GET https://bucket.test:443/blob: HTTP 403: expired"));
  http_->ThenRespond(202, "", {{"Location", "/upload/7?_state=secret"}}).ThenRespond(403, "no");
  const auto upload = store_->StartBlob(kRepository, {});
  EXPECT_EQ(Message((*upload)->Write(std::string(1500, 'x'))),
            fmt::format("PATCH {}/upload/7: HTTP 403: no", kOrigin));
}

TEST_F(RegistryTest, ErrorContainsRegistryMessage) {
  const std::string kBegin = "GET http://registry.test:5000/v2/: HTTP 500: UNKNOWN: unknown error";
  const struct {
    std::string detail;
    std::string shown;
  } cases[] = {
      {"null", ""},
      {R"("")", ""},
      {"{}", ""},
      {R"("write /data: no space left on device")", ": write /data: no space left on device"},
      {R"({"driver":"filesystem","detail":"full"})",
       R"(: {"detail":"full","driver":"filesystem"})"},
      // The error of a system call as docker-registry 2.8 writes it.
      {R"({"DriverName":"filesystem","Enclosed":{"Err":28,"Op":"write"}})",
       R"(: {"DriverName":"filesystem","Enclosed":{"Err":28,"Op":"write"}})"
       ": No space left on device"},
      {R"({"Enclosed":{"Err":-1}})", R"(: {"Enclosed":{"Err":-1}})"},
      {R"({"Enclosed":{"Err":"28"}})", R"(: {"Enclosed":{"Err":"28"}})"},
  };
  for (const auto& each : cases) {
    http_->ThenRespond(
        500,
        fmt::format(R"({{"errors":[{{"code":"UNKNOWN","message":"unknown error","detail":{}}}]}})",
                    each.detail));
    EXPECT_EQ(Message(store_->Ping({})), kBegin + each.shown);
  }
  http_->ThenRespond(500, "not of the registry");
  EXPECT_EQ(Message(store_->Ping({})),
            "GET http://registry.test:5000/v2/: HTTP 500: not of the registry");
}

TEST_F(RegistryTest, ErrorLengthIsLimited) {
  http_->ThenRespond(500,
                     fmt::format(R"({{"errors":[{{"code":"X","message":"{0}","detail":"{0}"}}]}})",
                                 std::string(5000, 'x')));
  EXPECT_LE(Message(store_->Ping({})).size(), 1200U);
}

TEST_F(RegistryTest, RedirectLoopFails) {
  http_->Otherwise([](const Request&) {
    return Response{.status = 302, .headers = {{"Location", "/again"}}};
  });
  EXPECT_TRUE(absl::IsUnavailable(Read(DigestOf("x"), 1)));
  EXPECT_LE(http_->requests().size(), 16U);
}

TEST_F(RegistryTest, WrongManifestIsDataLoss) {
  http_->ThenRespond(200, "something else");
  EXPECT_TRUE(
      absl::IsDataLoss(store_->ReadManifest(kRepository, DigestOf("the manifest"), {}).status()));
}

TEST_F(RegistryTest, RetriesManifestAfterDigestInvalid) {
  const PackedSample sample = PackTree({{"a", {.content = "x"}}});
  const std::string raced =
      R"({"errors":[{"code":"DIGEST_INVALID","message":"provided digest did not match"}]})";
  http_->ThenRespond(400, raced).ThenRespond(400, raced).ThenRespond(201, "");
  EXPECT_TRUE(store_->WriteManifest(kRepository, sample.packed.manifest_text, "k-1", {}).ok());
  http_->Otherwise([&](const Request&) { return Response{.status = 400, .body = raced}; });
  EXPECT_TRUE(absl::IsInvalidArgument(
      store_->WriteManifest(kRepository, sample.packed.manifest_text, "k-1", {}).status()));
}

TEST_F(RegistryTest, WrongDigestOfRegistryIsDataLoss) {
  const PackedSample sample = PackTree({{"a", {.content = "x"}}});
  http_->ThenRespond(201, "", {{"Docker-Content-Digest", DigestOf("other").ToString()}});
  EXPECT_TRUE(absl::IsDataLoss(
      store_->WriteManifest(kRepository, sample.packed.manifest_text, "", {}).status()));
}

TEST_F(RegistryTest, MountsBlobOfAnotherRepository) {
  http_
      ->ThenRespond(
          401, "", {{"WWW-Authenticate", "Bearer realm=\"https://auth.test/token\",service=\"r\""}})
      .ThenRespond(200, R"({"token":"both"})")
      .ThenRespond(201, "");
  const Digest digest = DigestOf("x");
  const auto mounted = store_->MountBlob("team/other", kRepository, digest, {});
  ASSERT_TRUE(mounted.ok()) << mounted.status();
  EXPECT_TRUE(*mounted);
  EXPECT_EQ(Sent(1).url,
            "https://auth.test:443/token?service=r&scope=repository%3Abase%2Fteam%2Fllama%3Apull%2C"
            "push&scope=repository%3Abase%2Fteam%2Fother%3Apull");
  EXPECT_EQ(Sent(2).method, http::Method::kPost);
  EXPECT_EQ(Sent(2).url, fmt::format("{}uploads/?mount=sha256%3A{}&from=base%2Fteam%2Fother",
                                     kBlobUrl, digest.hex()));
}

TEST_F(RegistryTest, CancelsUploadOpenedInsteadOfMount) {
  http_->ThenRespond(202, "", {{"Location", "/upload/7"}}).ThenRespond(204, "");
  const auto mounted = store_->MountBlob("team/other", kRepository, DigestOf("x"), {});
  ASSERT_TRUE(mounted.ok()) << mounted.status();
  EXPECT_FALSE(*mounted);
  EXPECT_EQ(Sent(1).method, http::Method::kDelete);
  EXPECT_EQ(Sent(1).url, fmt::format("{}/upload/7", kOrigin));
}

TEST_F(RegistryTest, FailedMountFallsBackToCopy) {
  for (const int status : {400, 403, 404, 405}) {
    http_->ThenRespond(status, "");
    const auto mounted = store_->MountBlob("team/other", kRepository, DigestOf("x"), {});
    ASSERT_TRUE(mounted.ok()) << mounted.status();
    EXPECT_FALSE(*mounted) << status;
  }
  http_->ThenRespond(500, "");
  EXPECT_TRUE(absl::IsUnavailable(
      store_->MountBlob("team/other", kRepository, DigestOf("x"), {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      store_->MountBlob("../other", kRepository, DigestOf("x"), {}).status()));
}

}  // namespace
}  // namespace cachewarm::bundle
