// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/core/watch_event.h"

#include <gtest/gtest.h>

#include <random>

#include "fmt/format.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/error.h"

namespace cachewarm::kube {
namespace {

std::string Line(const std::string& type, const std::string& name) {
  return fmt::format(R"({{"type":"{}","object":{{"metadata":{{"name":"{}"}}}}}})", type, name) +
         "\n";
}

// Decodes and records events as "ADDED a".
class Decoded {
 public:
  explicit Decoded(size_t line_bytes_max = 8U << 20U)
      : decoder([this](WatchEvent event) { return Note(std::move(event)); }, line_bytes_max) {}

  absl::Status Note(WatchEvent event) {
    constexpr const char* kNames[] = {"added", "modified", "deleted", "bookmark"};
    events.push_back(
        fmt::format("{} {}", kNames[static_cast<int>(event.type)], NameOf(*event.object).name));
    return answer;
  }

  std::vector<std::string> events;
  absl::Status answer;
  WatchDecoder decoder;
};

TEST(WatchDecoder, DecodesEachLineAsAnEvent) {
  Decoded decoded;
  ASSERT_TRUE(decoded.decoder
                  .Feed(Line("ADDED", "a") + Line("MODIFIED", "b") + Line("DELETED", "c") +
                        Line("BOOKMARK", "d"))
                  .ok());
  EXPECT_TRUE(decoded.decoder.Finish().ok());
  EXPECT_EQ(decoded.events,
            (std::vector<std::string>{"added a", "modified b", "deleted c", "bookmark d"}));
}

TEST(WatchDecoder, DeepObjectDoesNotEndWatch) {
  Decoded decoded;
  const std::string deep = R"({"type":"ADDED","object":{"metadata":{"name":"deep"},"spec":)" +
                           std::string(200, '[') + std::string(200, ']') + "}}\n";
  ASSERT_TRUE(decoded.decoder.Feed(deep + Line("ADDED", "b")).ok());
  EXPECT_EQ(decoded.events, (std::vector<std::string>{"added deep", "added b"}));
}

TEST(WatchDecoder, DecodesBytesSplitAnywhere) {
  std::string text;
  std::vector<std::string> expected;
  for (int i = 0; i < 30; ++i) {
    text += Line("ADDED", fmt::format("pod-{}-\u00e4\U0001f525", i));
    expected.push_back(fmt::format("added pod-{}-\u00e4\U0001f525", i));
  }
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    Decoded decoded;
    for (size_t at = 0; at < text.size();) {
      const size_t count =
          std::min<size_t>(text.size() - at, random() % static_cast<unsigned>(round * 4 + 2));
      ASSERT_TRUE(decoded.decoder.Feed(text.substr(at, count)).ok());
      at += count;
    }
    ASSERT_TRUE(decoded.decoder.Finish().ok());
    ASSERT_EQ(decoded.events, expected) << round;
  }
}

TEST(WatchDecoder, IgnoresEmptyLines) {
  Decoded decoded;
  EXPECT_TRUE(decoded.decoder.Feed("\n\r\n  \n" + Line("ADDED", "a") + "\n").ok());
  EXPECT_EQ(decoded.events.size(), 1U);
}

TEST(WatchDecoder, ErrorEventEndsStreamWithItsStatus) {
  Decoded decoded;
  const absl::Status status = decoded.decoder.Feed(
      Line("ADDED", "a") +
      R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}})"
      "\n" +
      Line("ADDED", "b"));
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ReasonOf(status), "Expired");
  EXPECT_EQ(decoded.events.size(), 1U);
  EXPECT_EQ(decoded.decoder.Feed(Line("ADDED", "c")), status) << "it accepts no more bytes";
  EXPECT_EQ(decoded.events.size(), 1U);
}

TEST(WatchDecoder, HandlerErrorEndsStream) {
  Decoded decoded;
  decoded.answer = absl::FailedPreconditionError("enough");
  EXPECT_EQ(decoded.decoder.Feed(Line("ADDED", "a") + Line("ADDED", "b")), decoded.answer);
  EXPECT_EQ(decoded.events.size(), 1U);
}

TEST(WatchDecoder, StreamEndingWithinALineIsUnavailable) {
  Decoded decoded;
  EXPECT_TRUE(decoded.decoder.Feed(R"({"type":"ADD)").ok());
  EXPECT_EQ(decoded.decoder.Finish().code(), absl::StatusCode::kUnavailable);
}

TEST(WatchDecoder, AcceptsLargestServerObject) {
  std::string escaped;
  for (size_t i = 0; i < (3U << 20U) / 2; ++i) {
    escaped += "\\u003c";
  }
  std::string line = Line("ADDED", "NAME");
  line.replace(line.find("NAME"), 4, escaped);
  int events = 0;
  WatchDecoder decoder([&](const WatchEvent&) {
    ++events;
    return absl::OkStatus();
  });
  EXPECT_TRUE(decoder.Feed(line).ok());
  EXPECT_EQ(events, 1);
}

TEST(WatchDecoder, RejectsLineOverTheLimitBeforeBuffering) {
  const std::string line = Line("ADDED", std::string(80, 'x'));
  Decoded fits(line.size() - 1);  // the newline does not count
  EXPECT_TRUE(fits.decoder.Feed(line).ok());
  Decoded whole(line.size() - 2);
  EXPECT_EQ(whole.decoder.Feed(line).code(), absl::StatusCode::kResourceExhausted);
  Decoded pieces(50);
  absl::Status status;
  for (int i = 0; i < 60 && status.ok(); ++i) {
    status = pieces.decoder.Feed("x");
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

TEST(WatchDecoder, RejectsNoise) {
  for (const char* line :
       {"noise", "[]", "3", "null", "{}", R"({"type":"ADDED"})", R"({"type":"ADDED","object":[]})",
        R"({"type":"NEW","object":{}})", R"({"type":7,"object":{}})", R"({"object":{}})",
        "{\"type\":\"ADDED\","}) {
    Decoded decoded;
    EXPECT_EQ(decoded.decoder.Feed(std::string(line) + "\n").code(),
              absl::StatusCode::kInvalidArgument)
        << line;
    EXPECT_TRUE(decoded.events.empty()) << line;
  }
  Decoded deep;
  EXPECT_FALSE(deep.decoder.Feed(std::string(100'000, '[') + "\n").ok());
}

}  // namespace
}  // namespace cachewarm::kube
