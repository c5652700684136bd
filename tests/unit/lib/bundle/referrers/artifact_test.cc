// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/referrers/artifact.h"

#include <string>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/referrers/listing.h"
#include "lib/bundle/store/layout/index.h"

namespace cachewarm::bundle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kType[] = "application/vnd.example.note";

Descriptor Named(const std::string& name, const std::string& type = std::string(kManifestType)) {
  return {.media_type = type, .digest = DigestOf(name), .bytes = 7};
}

Artifact Sample() {
  return {.type = kType,
          .config = Named("config", std::string(kEmptyType)),
          .layers = {Named("layer", "text/plain")},
          .subject = Named("subject"),
          .annotations = {{"a", "b"}}};
}

std::string Item(const std::string& name, const std::string& artifact_type) {
  return fmt::format(
      R"({{"mediaType":"{}","digest":"{}","size":7{}}})", kManifestType, DigestOf(name).ToString(),
      artifact_type.empty() ? "" : fmt::format(R"(,"artifactType":"{}")", artifact_type));
}

std::string List(const std::string& items) {
  return fmt::format(R"({{"schemaVersion":2,"mediaType":"{}","manifests":[{}]}})", kIndexType,
                     items);
}

TEST(Artifact, RoundTrips) {
  const auto read = ParseArtifact(*WriteArtifact(Sample()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->type, kType);
  EXPECT_EQ(read->config, Sample().config);
  EXPECT_EQ(read->layers, Sample().layers);
  EXPECT_EQ(read->subject, Sample().subject);
  EXPECT_EQ(read->annotations, Sample().annotations);
}

TEST(Artifact, TypeDefaultsToConfigMediaType) {
  Artifact artifact = Sample();
  artifact.type = "";
  EXPECT_EQ(ParseArtifact(*WriteArtifact(artifact))->type, kEmptyType);
}

TEST(Artifact, MalformedArtifactErrorNamesField) {
  const std::string good = *WriteArtifact(Sample());
  const auto changed = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  const struct {
    std::string text;
    std::string field;
  } cases[] = {{"", ""},
               {"[]", "document"},
               {changed(R"("subject")", R"("object")"), "subject: is required"},
               {changed(R"("layers")", R"("leaves")"), "layers: is required"},
               {changed(R"("schemaVersion":2)", R"("schemaVersion":1)"), "schemaVersion"},
               {changed("image.manifest.v1", "image.index.v1"), "mediaType"},
               {changed(DigestOf("subject").hex(), "short"), "subject.digest"},
               {changed(R"("size":7)", R"("size":-7)"), "size"}};
  for (const auto& c : cases) {
    const auto read = ParseArtifact(c.text);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << c.text;
    EXPECT_THAT(Message(read.status()), HasSubstr(c.field)) << c.text;
  }
}

TEST(Listing, ReturnsItemsThatMayHaveTheType) {
  const std::string text =
      List(fmt::format("{},{},{},{}", Item("right", kType), Item("other", "application/x"),
                       Item("untyped", ""), Item("config's", std::string(kEmptyType))));
  EXPECT_THAT(*ParseListing(text, kType),
              ElementsAre(Named("right"), Named("untyped"), Named("config's")));
  EXPECT_TRUE(ParseListing(List(""), kType)->empty());
}

TEST(Listing, RejectsMalformedList) {
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), std::string(R"({"schemaVersion":1})"),
        List("1"), List("{}"), List(R"({"mediaType":"x","digest":"sha256:1","size":1})")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseListing(text, kType).status())) << text;
  }
}

TEST(Listing, RejectsTooManyValues) {
  std::string text = *AddToListing("", Named("one"), Sample());
  std::string values = "0";
  for (size_t i = 0; i < kManifestLimits.values_max; ++i) {
    values += ",0";
  }
  text.insert(text.size() - 1, R"(,"extra":[)" + values + "]");
  ASSERT_LT(text.size(), size_t{kListingBytesMax});
  EXPECT_THAT(std::string(ParseListing(text, kType).status().message()),
              HasSubstr("over the limit of"));
  EXPECT_THAT(std::string(AddToListing(text, Named("two"), Sample()).status().message()),
              HasSubstr("over the limit of"));
}

TEST(Listing, AddKeepsUnknownFields) {
  const std::string first = *AddToListing("", Named("one"), Sample());
  EXPECT_THAT(*ParseListing(first, kType), ElementsAre(Named("one")));
  EXPECT_EQ(*AddToListing(first, Named("one"), Sample()), first);
  std::string strange = first;
  strange.insert(strange.size() - 1, R"(,"strange":[1.5])");
  const std::string second = *AddToListing(strange, Named("two"), Sample());
  EXPECT_THAT(*ParseListing(second, kType), ElementsAre(Named("one"), Named("two")));
  EXPECT_THAT(second, HasSubstr(R"("strange":[1.5])"));
  EXPECT_THAT(second, HasSubstr(R"("annotations":{"a":"b"})"));
}

TEST(Listing, AddFailsIfFull) {
  std::string items;
  for (size_t i = 0; i < kReferrersMax; ++i) {
    items += fmt::format("{}{}", i == 0 ? "" : ",", Item(std::to_string(i), kType));
  }
  EXPECT_TRUE(
      absl::IsResourceExhausted(AddToListing(List(items), Named("one more"), Sample()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      ParseListing(List(items + "," + Item("one more", kType)), kType).status()));
}

TEST(Listing, TagNamesTheSubject) {
  EXPECT_EQ(ListingTag(DigestOf("")),
            "sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace cachewarm::bundle
