// SPDX-License-Identifier: Apache-2.0
// Uploads of blobs, and how interrupted ones resume.
#include <algorithm>
#include <stop_token>
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
using http::Method;
using http::Request;
using http::Response;
using ::testing::HasSubstr;

Response Has(size_t bytes) {
  return {.status = 204,
          .headers = {{"Range", fmt::format("0-{}", std::max<size_t>(bytes, 1) - 1)},
                      {"Location", "/upload/now"}}};
}

// A fake registry that stores one upload and fails as configured.
class UploadingRegistry {
 public:
  // By PATCH or PUT: the number of bytes to keep, and the status (0: the connection breaks).
  struct Failure {
    int at = 0;
    size_t kept = 0;
    int status = 0;
  };
  std::vector<Failure> failures;
  bool forgets = false;
  int status_failures = 0;  // number of requests for the offset that fail

  absl::StatusOr<Response> Answer(const Request& request) {
    methods += fmt::format("{} ", http::MethodName(request.method));
    switch (request.method) {
      case Method::kPost:
        return Response{.status = 202, .headers = {{"Location", "/upload/1"}}};
      case Method::kPatch:
      case Method::kPut:
        return Take(request);
      case Method::kGet:
        if (status_failures > 0) {
          --status_failures;
          return absl::UnavailableError("reset");
        }
        return forgets ? Response{.status = 404} : Has(bytes.size());
      case Method::kHead:
        return Response{.status = committed ? 200 : 404};
      case Method::kDelete:
        return Response{.status = 204};
    }
    return absl::InternalError("no such method");
  }

  std::string methods;
  std::string bytes;
  bool committed = false;

 private:
  absl::StatusOr<Response> Take(const Request& request) {
    const int number = number_++;
    const auto failure = std::find_if(failures.begin(), failures.end(),
                                      [&](const Failure& f) { return f.at == number; });
    if (failure != failures.end()) {
      bytes += request.body.substr(0, failure->kept);
      return failure->status == 0
                 ? absl::StatusOr<Response>(absl::UnavailableError("connection reset"))
                 : Response{.status = failure->status};
    }
    const std::string begin = fmt::format("{}-", bytes.size());
    if (!request.headers.Find("Content-Range").value_or(begin).starts_with(begin)) {
      return Response{.status = 416};
    }
    bytes += request.body;
    committed = request.method == Method::kPut;
    return Response{.status = committed ? 201 : 202, .headers = {{"Location", "/upload/next"}}};
  }

  int number_ = 0;
};

class UploadTest : public RegistryTest {
 protected:
  absl::StatusOr<Descriptor> Upload(UploadingRegistry& registry, const std::string& blob) {
    http_->Otherwise([&registry](const Request& request) { return registry.Answer(request); });
    auto upload = store_->StartBlob(kRepository, {});
    if (const absl::Status written = (*upload)->Write(blob); !written.ok()) {
      return written;
    }
    return (*upload)->Commit();
  }
};

TEST_F(UploadTest, SmallBlobNeedsOnePut) {
  const std::string blob = Noise(1000, 7);
  http_->ThenRespond(202, "", {{"Location", "/v2/base/team/llama/blobs/uploads/1?_state=a%3D"}})
      .ThenRespond(201, "");
  auto upload = store_->StartBlob(kRepository, {});
  ASSERT_TRUE((*upload)->Write(blob).ok());
  const auto written = (*upload)->Commit();
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(Sent(0).method, http::Method::kPost);
  EXPECT_EQ(Sent(0).url, std::string(kBlobUrl) + "uploads/");
  EXPECT_EQ(Sent(1).method, http::Method::kPut);
  EXPECT_EQ(Sent(1).url, fmt::format("{}uploads/1?_state=a%3D&digest=sha256%3A{}", kBlobUrl,
                                     DigestOf(blob).hex()));
  EXPECT_EQ(Sent(1).body, blob);
}

TEST_F(UploadTest, LargeBlobIsSentInChunks) {
  const std::string blob = Noise(2500, 8);
  const auto accepted = [](int number) {
    return Headers{{"Location", fmt::format("/upload/{}", number)}};
  };
  http_->ThenRespond(202, "", accepted(1))
      .ThenRespond(202, "", accepted(2))
      .ThenRespond(202, "", accepted(3))
      .ThenRespond(202, "", accepted(4))
      .ThenRespond(201, "");
  auto upload = store_->StartBlob(kRepository, {});
  for (size_t at = 0; at < blob.size(); at += 300) {
    ASSERT_TRUE((*upload)->Write(blob.substr(at, 300)).ok());
  }
  const auto written = (*upload)->Commit();
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->digest, DigestOf(blob));
  const char* const ranges[] = {"0-999", "1000-1999", "2000-2499"};
  std::string sent;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(Sent(1 + i).method, http::Method::kPatch);
    EXPECT_EQ(Sent(1 + i).url, fmt::format("{}/upload/{}", kOrigin, i + 1));
    EXPECT_EQ(HeaderSent(1 + i, "Content-Range"), ranges[i]);
    sent += Sent(1 + i).body;
  }
  EXPECT_EQ(sent, blob);
  EXPECT_EQ(Sent(4).body, "");
}

TEST_F(UploadTest, UploadToAnotherHostGetsNoCredentials) {
  http_->ThenRespond(401, "", {{"WWW-Authenticate", "Basic realm=\"x\""}})
      .ThenRespond(202, "", {{"Location", "https://upload.test/1"}})
      .ThenRespond(201, "");
  auto upload = store_->StartBlob(kRepository, {});
  ASSERT_TRUE((*upload)->Commit().ok());
  EXPECT_EQ(HeaderSent(1, "Authorization"), "Basic d2FybTpzZWNyZXQ=");
  EXPECT_EQ(HeaderSent(2, "Authorization"), "");
}

TEST_F(UploadTest, FailsWithoutLocation) {
  http_->ThenRespond(202, "");
  auto upload = store_->StartBlob(kRepository, {});
  EXPECT_FALSE((*upload)->Commit().ok());
}

TEST_F(UploadTest, ResumesAtOffset) {
  const std::string blob = Noise(2500, 9);
  const struct {
    std::vector<UploadingRegistry::Failure> failures;
    std::string methods;
  } cases[] = {
      // The registry gets nothing, a part, or all of a chunk; only the response is lost.
      {{{.at = 1, .kept = 0}}, "POST PATCH PATCH GET PATCH PATCH PUT "},
      {{{.at = 1, .kept = 300}}, "POST PATCH PATCH GET PATCH PATCH PUT "},
      {{{.at = 1, .kept = 1000}}, "POST PATCH PATCH GET PATCH PUT "},
      {{{.at = 0, .kept = 0, .status = 500}}, "POST PATCH GET PATCH PATCH PATCH PUT "},
      {{{.at = 1, .kept = 999, .status = 502}}, "POST PATCH PATCH GET PATCH PATCH PUT "},
      {{{.at = 2, .kept = 0, .status = 429}}, "POST PATCH PATCH PATCH GET PATCH PUT "},
      {{{.at = 1, .kept = 7, .status = 416}}, "POST PATCH PATCH GET PATCH PATCH PUT "},
      // The last PUT.
      {{{.at = 3, .kept = 0, .status = 503}}, "POST PATCH PATCH PATCH PUT GET PUT "},
  };
  for (const auto& c : cases) {
    UploadingRegistry registry;
    registry.failures = c.failures;
    const auto written = Upload(registry, blob);
    ASSERT_TRUE(written.ok()) << written.status() << registry.methods;
    EXPECT_EQ(written->digest, DigestOf(blob));
    EXPECT_EQ(written->bytes, 2500);
    EXPECT_TRUE(registry.bytes == blob) << registry.methods;
    EXPECT_EQ(registry.methods, c.methods);
  }
}

TEST_F(UploadTest, ResumesSinglePut) {
  const std::string blob = Noise(900, 10);
  UploadingRegistry registry;
  registry.failures = {{.at = 0, .kept = 400}, {.at = 1, .kept = 100}};
  ASSERT_TRUE(Upload(registry, blob).ok());
  EXPECT_TRUE(registry.bytes == blob);
  EXPECT_EQ(registry.methods, "POST PUT GET PUT GET PUT ");
}

TEST_F(UploadTest, ProgressResetsRetries) {
  const std::string blob = Noise(1500, 11);
  UploadingRegistry registry;
  for (int i = 0; i < 9; ++i) {
    registry.failures.push_back({.at = i, .kept = 100});
  }
  EXPECT_TRUE(Upload(registry, blob).ok());
  EXPECT_TRUE(registry.bytes == blob);
}

TEST_F(UploadTest, FailsWithoutProgressAndDeletesUpload) {
  UploadingRegistry registry;
  for (int i = 0; i < 9; ++i) {
    registry.failures.push_back({.at = i, .kept = 0});
  }
  const auto written = Upload(registry, Noise(1500, 12));
  EXPECT_TRUE(absl::IsUnavailable(written.status())) << written.status();
  EXPECT_EQ(registry.methods, "POST PATCH GET PATCH GET PATCH GET PATCH DELETE ");
}

TEST_F(UploadTest, RetriesOffsetRequest) {
  const std::string blob = Noise(1500, 13);
  UploadingRegistry registry;
  registry.failures = {{.at = 0, .kept = 10}};
  registry.status_failures = 2;
  EXPECT_TRUE(Upload(registry, blob).ok());
  EXPECT_TRUE(registry.bytes == blob);
}

TEST_F(UploadTest, DiscardedUploadAsksForWholeBlob) {
  UploadingRegistry registry;
  registry.failures = {{.at = 1, .kept = 0}};
  registry.forgets = true;
  const auto written = Upload(registry, Noise(2500, 14));
  EXPECT_TRUE(absl::IsUnavailable(written.status())) << written.status();
  EXPECT_THAT(Message(written.status()), HasSubstr("send the whole blob again"));
}

TEST_F(UploadTest, DoesNotResumeIfRegistryLostBytes) {
  UploadingRegistry registry;
  registry.failures = {{.at = 1, .kept = 0}};
  http_->Otherwise([&](const Request& request) -> absl::StatusOr<Response> {
    return request.method == Method::kGet ? Has(500) : registry.Answer(request);
  });
  auto upload = store_->StartBlob(kRepository, {});
  const absl::Status written = (*upload)->Write(Noise(2500, 15));
  EXPECT_TRUE(absl::IsUnavailable(written)) << written;
  EXPECT_THAT(Message(written), HasSubstr("send the whole blob again"));
}

TEST_F(UploadTest, DoesNotResumeBeyondTheBytesSent) {
  for (const char* range : {"0-9999", "0-9223372036854775807", "0-9223372036854775808", "0--1"}) {
    UploadingRegistry registry;
    registry.failures = {{.at = 1, .kept = 0}};
    http_->Otherwise([&](const Request& request) -> absl::StatusOr<Response> {
      return request.method == Method::kGet ? Response{.status = 204, .headers = {{"Range", range}}}
                                            : registry.Answer(request);
    });
    const absl::Status written = (*store_->StartBlob(kRepository, {}))->Write(Noise(2500, 15));
    EXPECT_TRUE(absl::IsUnavailable(written)) << range << written;
    EXPECT_THAT(Message(written), HasSubstr("send the whole blob again"));
  }
}

TEST_F(UploadTest, LostAnswerToLastPutSucceeds) {
  UploadingRegistry registry;
  registry.failures = {{.at = 0, .kept = 900}};
  registry.forgets = true;  // a committed upload does not exist any more
  registry.committed = true;
  const auto written = Upload(registry, Noise(900, 16));
  EXPECT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(registry.methods, "POST PUT GET HEAD ");
}

TEST_F(UploadTest, DoesNotRetryPermanentErrors) {
  for (const int status : {400, 403, 413}) {
    UploadingRegistry registry;
    registry.failures = {{.at = 0, .kept = 0, .status = status}};
    const auto written = Upload(registry, Noise(1500, 17));
    EXPECT_FALSE(written.ok()) << status;
    EXPECT_FALSE(IsRetryable(written.status())) << written.status();
    EXPECT_EQ(registry.methods, "POST PATCH DELETE ") << status;
  }
}

TEST_F(UploadTest, DestroyedUploadIsDeleted) {
  UploadingRegistry registry;
  http_->Otherwise([&registry](const Request& request) { return registry.Answer(request); });
  std::stop_source stop;
  {
    auto upload = store_->StartBlob(kRepository, stop.get_token());
    ASSERT_TRUE((*upload)->Write(Noise(1500, 18)).ok());
    stop.request_stop();
    EXPECT_TRUE(absl::IsCancelled((*upload)->Commit().status()));
  }
  EXPECT_EQ(registry.methods, "POST PATCH DELETE ");
  EXPECT_EQ(http_->requests().back().url, fmt::format("{}/upload/next", kOrigin));
  // An upload without bytes has nothing to delete.
  { EXPECT_TRUE((*store_->StartBlob(kRepository, {}))->Write("x").ok()); }
  EXPECT_EQ(registry.methods, "POST PATCH DELETE ");
}

}  // namespace
}  // namespace cachewarm::bundle
