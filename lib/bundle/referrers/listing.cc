// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/referrers/listing.h"

#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/referrers/descriptor.h"
#include "lib/bundle/store/layout/index.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"

namespace cachewarm::bundle {
namespace {

using codec::Json;
using codec::Reader;

constexpr codec::JsonLimits kListingLimits{.bytes_max = size_t{kListingBytesMax},
                                           .values_max = kManifestLimits.values_max};

struct ListedReferrer {
  Descriptor manifest;
  std::string artifact_type;
};

absl::StatusOr<std::vector<ListedReferrer>> ReadListing(const Json& json) {
  std::vector<ListedReferrer> items;
  Reader reader(json, "");
  int schema = 0;
  reader.Require("schemaVersion").Read("schemaVersion", schema, 2, 2);
  reader.List("manifests", kReferrersMax, [&](Reader& each) {
    ListedReferrer& item = items.emplace_back();
    ReadDescriptor(each, item.manifest);
    each.Read("artifactType", item.artifact_type);
  });
  CW_RETURN_IF_ERROR(Annotate(reader.status(), "list of referrers"));
  return items;
}

}  // namespace

absl::StatusOr<std::vector<Descriptor>> ParseListing(std::string_view text,
                                                     std::string_view artifact_type) {
  CW_ASSIGN_OR_RETURN(const Json json, codec::ParseJson(text, kListingLimits));
  CW_ASSIGN_OR_RETURN(const std::vector<ListedReferrer> items, ReadListing(json));
  std::vector<Descriptor> found;
  for (const ListedReferrer& item : items) {
    if (item.manifest.media_type == kManifestType &&
        (artifact_type.empty() || item.artifact_type == artifact_type ||
         item.artifact_type.empty() || item.artifact_type == kEmptyType)) {
      found.push_back(item.manifest);
    }
  }
  return found;
}

absl::StatusOr<std::string> AddToListing(std::string_view text, const Descriptor& referrer,
                                         const Artifact& artifact) {
  Json json = {{"schemaVersion", 2}, {"mediaType", kIndexType}, {"manifests", Json::array()}};
  if (!text.empty()) {
    CW_ASSIGN_OR_RETURN(json, codec::ParseJson(text, kListingLimits));
  }
  CW_ASSIGN_OR_RETURN(const std::vector<ListedReferrer> items, ReadListing(json));
  for (const ListedReferrer& item : items) {
    if (item.manifest.digest == referrer.digest) {
      return std::string(text);
    }
  }
  Json added = DescriptorJson(referrer);
  added["artifactType"] = artifact.type;
  if (!artifact.annotations.empty()) {
    added["annotations"] = artifact.annotations;
  }
  json["manifests"].push_back(std::move(added));
  std::string changed = codec::DumpJson(json);
  if (items.size() >= kReferrersMax || changed.size() > size_t{kListingBytesMax}) {
    return absl::ResourceExhaustedError(
        fmt::format("{} manifests already refer to manifest {}: remove some of them from the store",
                    items.size(), artifact.subject.digest.Short()));
  }
  return changed;
}

std::string ListingTag(const Digest& subject) {
  return fmt::format("sha256-{}", subject.hex());
}

bool IsListingTag(std::string_view tag) {
  constexpr std::string_view kPrefix = "sha256-";
  return tag.starts_with(kPrefix) &&
         Digest::Parse(fmt::format("sha256:{}", tag.substr(kPrefix.size()))).ok();
}

}  // namespace cachewarm::bundle
