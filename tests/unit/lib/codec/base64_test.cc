// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/base64.h"

#include <utility>

#include "gtest/gtest.h"

namespace cachewarm::codec {
namespace {

TEST(Base64, RoundTripsAndRejectsOtherText) {
  const std::pair<const char*, const char*> good[] = {{"", ""},
                                                      {"Zg==", "f"},
                                                      {"Zm8=", "fo"},
                                                      {"Zm9v", "foo"},
                                                      {"Zm9vYg==", "foob"},
                                                      {"Zm9v\nYmFy\n", "foobar"},
                                                      {"+/+/", "\xfb\xff\xbf"}};
  for (const auto& [text, bytes] : good) {
    EXPECT_EQ(DecodeBase64(text).value_or("refused"), bytes) << text;
  }
  for (const std::string bytes : {"", "f", "fo", "foo", "foob", "\xfb\xff\xbf"}) {
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)).value_or("refused"), bytes);
  }
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "Z=g=", "Zm9v!", "Zm-_", "===="}) {
    EXPECT_FALSE(DecodeBase64(text).ok()) << text;
  }
}

}  // namespace
}  // namespace cachewarm::codec
