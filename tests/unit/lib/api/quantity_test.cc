// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/api/kubernetes.h"

namespace cachewarm::api {
namespace {

struct Case {
  std::string text;
  bool milli;
  int64_t value;
};

TEST(Quantity, EverySuffixHasItsUnit) {
  const Case cases[] = {
      {"0", false, 0},
      {"8", false, 8},
      {"+8", false, 8},
      {"8.", false, 8},
      {".5", true, 500},
      {"500m", true, 500},
      {"4", true, 4000},
      {"1.5", true, 1500},
      {"0.1", true, 100},
      {"250u", true, 1},
      {"1n", true, 1},
      {"2k", false, 2000},
      {"3M", false, 3'000'000},
      {"1G", false, 1'000'000'000},
      {"1T", false, 1'000'000'000'000},
      {"1P", false, 1'000'000'000'000'000},
      {"1E", false, 1'000'000'000'000'000'000},
      {"1Ki", false, 1024},
      {"16Gi", false, int64_t{16} << 30},
      {"1.5Gi", false, int64_t{3} << 29},
      {"1Ti", false, int64_t{1} << 40},
      {"1Pi", false, int64_t{1} << 50},
      {"1Ei", false, int64_t{1} << 60},
      {"1e3", false, 1000},
      {"1E3", false, 1000},
      {"12e+2", false, 1200},
      {"1500e-3", true, 1500},
      {"-5", false, -5},
      {"32780628Ki", false, int64_t{32780628} * 1024},
  };
  for (const Case& each : cases) {
    const auto value = ParseQuantity(each.text, each.milli);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(*value, each.value) << each.text;
  }
}

TEST(Quantity, FractionsRoundUp) {
  EXPECT_EQ(*ParseQuantity("100m", false), 1);
  EXPECT_EQ(*ParseQuantity("1.2", false), 2);
  EXPECT_EQ(*ParseQuantity("1.0001Ki", false), 1025);
  EXPECT_EQ(*ParseQuantity("1e-9", true), 1);
}

TEST(Quantity, ValuesOver63BitsAreCapped) {
  for (const char* text : {"9223372036854775807", "16Ei", "1e36", "99999999999999999999", "9E"}) {
    EXPECT_GE(*ParseQuantity(text, false), 9'000'000'000'000'000'000) << text;
  }
  EXPECT_EQ(*ParseQuantity("99999999999999999999", false), INT64_MAX);
  EXPECT_EQ(*ParseQuantity("-1e36", false), -INT64_MAX);
}

TEST(Quantity, LongFractionsStayCloseToTheirValue) {
  EXPECT_EQ(*ParseQuantity("1.000000000000000000000", false), 1);
  EXPECT_NEAR(static_cast<double>(*ParseQuantity("1.5Ei", false)), 1.5 * 1152921504606846976.0,
              1e4);
}

TEST(Quantity, AnythingElseIsRefused) {
  for (const char* text : {"",
                           "m",
                           "-",
                           ".",
                           "1x",
                           "1 Gi",
                           "1gi",
                           "Gi",
                           "1e",
                           "1e+",
                           "1e99",
                           "0x10",
                           "1.2.3",
                           "--1",
                           "1ee3",
                           "1e3Gi",
                           "1e1000000000000",
                           "1e-37",
                           "1e-2147483648",
                           "1e2147483647"}) {
    EXPECT_EQ(ParseQuantity(text, false).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_FALSE(ParseQuantity(std::string(65, '1'), false).ok());
}

}  // namespace
}  // namespace cachewarm::api
