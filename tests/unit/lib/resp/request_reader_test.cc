// SPDX-License-Identifier: Apache-2.0
#include "lib/resp/request_reader.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

namespace cachewarm::resp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Bytes(const std::vector<Argument>& arguments) {
  std::vector<std::string> out;
  for (const Argument& argument : arguments) {
    out.push_back(argument.dropped ? "(dropped)" : argument.bytes);
  }
  return out;
}

// Reads `input` in parts of `step` bytes. Returns the complete requests; `error` gets the message
// of a protocol error.
std::vector<std::vector<std::string>> ReadAll(RequestReader& reader, std::string_view input,
                                              size_t step, std::string* error = nullptr) {
  std::vector<std::vector<std::string>> requests;
  while (!input.empty()) {
    const std::string_view part = input.substr(0, step);
    const absl::StatusOr<size_t> read = reader.Read(part);
    if (!read.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
      EXPECT_NE(error, nullptr) << read.status();
      if (error != nullptr) {
        *error = std::string(read.status().message());
      }
      return requests;
    }
    EXPECT_TRUE(*read == part.size() || reader.IsComplete());
    input.remove_prefix(*read);
    if (reader.IsComplete()) {
      requests.push_back(Bytes(reader.Take()));
    }
  }
  return requests;
}

bool Always(size_t) {
  return true;
}
bool Never(size_t) {
  return false;
}

constexpr std::string_view kSet("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\0\r\n\r\n", 30);

TEST(RequestReader, ReadsPipelinedRequestsInPartsOfAnySize) {
  const std::string input = std::string(kSet) + "*1\r\n$4\r\nPING\r\n" + std::string(kSet);
  for (size_t step = 1; step <= input.size(); ++step) {
    RequestReader reader(Always);
    const auto requests = ReadAll(reader, input, step);
    ASSERT_EQ(requests.size(), 3U) << step;
    EXPECT_THAT(requests[0], ElementsAre("SET", "k", std::string("a\0\r\n", 4)));
    EXPECT_THAT(requests[1], ElementsAre("PING"));
    EXPECT_EQ(requests[2], requests[0]);
    EXPECT_TRUE(reader.IsIdle());
  }
}

TEST(RequestReader, ReadsEmptyArguments) {
  RequestReader reader(Always);
  EXPECT_THAT(ReadAll(reader, "*2\r\n$0\r\n\r\n$0\r\n\r\n", 1), ElementsAre(ElementsAre("", "")));
}

TEST(RequestReader, ACompleteRequestReadsNoMoreBytes) {
  RequestReader reader(Always);
  const std::string two = "*1\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n";
  EXPECT_EQ(*reader.Read(two), two.size() / 2);
  EXPECT_TRUE(reader.IsComplete());
  EXPECT_EQ(*reader.Read(two), 0U);
}

TEST(RequestReader, IsIdleOnlyBetweenRequests) {
  RequestReader reader(Always);
  EXPECT_TRUE(reader.IsIdle());
  for (size_t i = 0; i < kSet.size(); ++i) {
    ASSERT_EQ(*reader.Read(kSet.substr(i, 1)), 1U);
    EXPECT_FALSE(reader.IsIdle()) << i;
    EXPECT_EQ(reader.IsComplete(), i + 1 == kSet.size()) << i;
  }
  static_cast<void>(reader.Take());
  EXPECT_TRUE(reader.IsIdle());
}

TEST(RequestReader, RejectsMalformedInput) {
  const std::pair<std::string, std::string> kCases[] = {
      {"PING\r\n", "array of bulk strings"},
      {"GET / HTTP/1.1\r\n", "array of bulk strings"},
      {"*\r\n", "array of bulk strings"},
      {"*1\n$4\r\n", "array of bulk strings"},
      {"*+1\r\n", "array of bulk strings"},
      {"* 1\r\n", "array of bulk strings"},
      {"*1x\r\n", "array of bulk strings"},
      {"*99999999999999999999999999\r\n", "array of bulk strings"},
      {"*18446744073709551616\r\n", "array of bulk strings"},
      {"*-1\r\n", "array of bulk strings"},
      {"*0\r\n", "1 to 64 arguments"},
      {"*65\r\n", "1 to 64 arguments"},
      {"*1\r\n*1\r\n", "bulk string"},
      {"*1\r\n:1\r\n", "bulk string"},
      {"*1\r\n$-1\r\n", "bulk string"},
      {"*1\r\n$1000000000000\r\n", "at most 536870912 bytes"},
      {"*1\r\n$536870913\r\n", "at most 536870912 bytes"},
      {"*1\r\n$4\r\nPINGX\r\n", "longer than its announced size"},
      {"*1\r\n$4\r\nPING\n\n", "longer than its announced size"},
      {"*1\r\n$4\r\nPING\rx", "longer than its announced size"},
      {std::string(1000, '*'), "array of bulk strings"},
      {"*1\r\n" + std::string(1000, '$'), "bulk string"},
  };
  for (const auto& [input, problem] : kCases) {
    for (const size_t step : {size_t{1}, size_t{3}, input.size()}) {
      RequestReader reader(Always);
      std::string error;
      EXPECT_THAT(ReadAll(reader, input, step, &error), IsEmpty()) << input;
      EXPECT_THAT(error, HasSubstr(problem)) << input;
    }
  }
}

TEST(RequestReader, DropsALargeArgumentThatMayNotBeKept) {
  const std::string value(5000, 'v');
  const std::string input = "*2\r\n$5000\r\n" + value + "\r\n$1\r\nk\r\n";
  RequestReader reader(Never);
  EXPECT_THAT(ReadAll(reader, input, 700), ElementsAre(ElementsAre("(dropped)", "k")));
  RequestReader keeping(Always);
  EXPECT_THAT(ReadAll(keeping, input, 700), ElementsAre(ElementsAre(value, "k")));
}

TEST(RequestReader, AsksOnceForEachLargeArgumentBeforeItsBytes) {
  std::vector<size_t> asked;
  RequestReader reader([&](size_t bytes) {
    asked.push_back(bytes);
    return true;
  });
  EXPECT_THAT(ReadAll(reader, "*3\r\n$1024\r\n" + std::string(1024, 'a') + "\r\n$1025\r\n", 7),
              IsEmpty());
  EXPECT_THAT(asked, ElementsAre(1025));
  EXPECT_THAT(ReadAll(reader, std::string(1025, 'b') + "\r\n$536870912\r\n", 7), IsEmpty());
  EXPECT_THAT(asked, ElementsAre(1025, 536870912));
}

}  // namespace
}  // namespace cachewarm::resp
