// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/layout/index.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"

namespace cachewarm::bundle {
namespace {

using codec::Json;
using codec::Reader;

constexpr char kRefName[] = "org.opencontainers.image.ref.name";
constexpr size_t kItemsMax = 10'000;

Json ToJson(const IndexItem& item) {
  Json json = {{"mediaType", item.manifest.media_type},
               {"digest", item.manifest.digest.ToString()},
               {"size", item.manifest.bytes}};
  if (!item.artifact_type.empty()) {
    json["artifactType"] = item.artifact_type;
  }
  if (!item.tag.empty()) {
    json["annotations"] = {{kRefName, item.tag}};
  }
  return json;
}

void ReadItem(Reader& reader, IndexItem& item) {
  std::string digest;
  std::map<std::string, std::string> annotations;
  item.artifact_type.clear();
  reader.Require("mediaType").Read("mediaType", item.manifest.media_type);
  reader.Require("digest").Read("digest", digest);
  reader.Require("size").Read("size", item.manifest.bytes, 0);
  reader.Read("annotations", annotations).Read("artifactType", item.artifact_type);
  if (!reader.status().ok()) {
    return;
  }
  item.tag = annotations[kRefName];
  auto parsed = Digest::Parse(digest);
  if (!parsed.ok()) {
    reader.Fail("digest", Message(parsed.status()));
    return;
  }
  item.manifest.digest = *std::move(parsed);
}

}  // namespace

absl::StatusOr<std::vector<IndexItem>> ParseIndex(std::string_view text) {
  CW_ASSIGN_OR_RETURN(const Json json,
                      codec::ParseJson(text, {.bytes_max = size_t{kIndexBytesMax}}));
  std::vector<IndexItem> items;
  Reader reader(json, "");
  int schema = 0;
  reader.Require("schemaVersion").Read("schemaVersion", schema, 2, 2);
  reader.List("manifests", kItemsMax, [&](Reader& each) { ReadItem(each, items.emplace_back()); });
  CW_RETURN_IF_ERROR(Annotate(reader.status(), "index.json"));
  return items;
}

absl::StatusOr<std::string> WriteIndex(const std::vector<IndexItem>& items) {
  Json manifests = Json::array();
  for (const IndexItem& item : items) {
    manifests.push_back(ToJson(item));
  }
  return codec::CanonicalJson(
      {{"schemaVersion", 2}, {"mediaType", kIndexType}, {"manifests", std::move(manifests)}});
}

std::vector<IndexItem> AddToIndex(std::vector<IndexItem> items, const IndexItem& added,
                                  size_t items_max) {
  IndexItem item = added;
  for (IndexItem& old : items) {
    if (old.manifest.digest == added.manifest.digest && item.tag.empty()) {
      item.tag = old.tag;
    }
    if (old.tag == added.tag) {
      old.tag.clear();
    }
  }
  std::erase_if(items, [&](const IndexItem& old) {
    return old.manifest.digest == item.manifest.digest && (old.tag.empty() || old.tag == item.tag);
  });
  items.push_back(std::move(item));
  const auto is_same = [&](const IndexItem& old) {
    return old.artifact_type == added.artifact_type;
  };
  auto count = static_cast<size_t>(std::count_if(items.begin(), items.end(), is_same));
  for (auto oldest = items.begin(); count > items_max; --count) {
    oldest = std::find_if(oldest, items.end() - 1,
                          [&](const IndexItem& old) { return old.tag.empty() && is_same(old); });
    if (oldest == items.end() - 1) {
      break;
    }
    oldest = items.erase(oldest);
  }
  return items;
}

std::optional<Digest> FindTag(const std::vector<IndexItem>& items, std::string_view tag) {
  for (const IndexItem& item : items) {
    if (!tag.empty() && item.tag == tag) {
      return item.manifest.digest;
    }
  }
  return std::nullopt;
}

}  // namespace cachewarm::bundle
