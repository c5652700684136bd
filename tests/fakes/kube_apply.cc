// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/kube_apply.h"

#include <algorithm>

#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/object.h"

namespace cachewarm::fakes {
namespace {

using codec::Json;

using ListKey = std::vector<std::string>;

// In order of preference; includes the x-kubernetes-list-map-keys of cachewarm's resources.
const std::vector<ListKey>& ListKeys() {
  static const std::vector<ListKey> keys = {{"uid"}, {"podUID"}, {"id"},   {"key", "digest"},
                                            {"key"}, {"digest"}, {"type"}, {"name"}};
  return keys;
}

// The members that identify the items of a list; empty: the list is replaced as a whole.
ListKey KeyOf(const Json& list) {
  if (list.empty()) {
    return {};
  }
  for (const ListKey& key : ListKeys()) {
    if (std::all_of(list.begin(), list.end(), [&](const Json& item) {
          return item.is_object() &&
                 std::all_of(key.begin(), key.end(), [&](const std::string& member) {
                   return item.contains(member) && item[member].is_string();
                 });
        })) {
      return key;
    }
  }
  return {};
}

constexpr char kBetweenParts = '\x1f';
constexpr char kBeforeValues = '\x1e';

// One step of a FieldPath into a list: "[" names of the key, their values.
std::string Segment(const ListKey& key, const Json& item) {
  std::string segment = "[";
  for (const std::string& member : key) {
    segment += member + kBetweenParts;
  }
  segment += kBeforeValues;
  for (const std::string& member : key) {
    segment += codec::TextAt(item, {member}) + kBetweenParts;
  }
  return segment;
}

bool IsItem(const std::string& segment) {
  return !segment.empty() && segment.front() == '[';
}

ListKey KeyIn(const std::string& segment) {
  ListKey key;
  size_t at = 1;
  for (size_t end = 0; at < segment.find(kBeforeValues); at = end + 1) {
    end = segment.find(kBetweenParts, at);
    key.push_back(segment.substr(at, end - at));
  }
  return key;
}

// The item that `segment` names.
Json::iterator FindItem(Json& list, const std::string& segment) {
  const ListKey key = KeyIn(segment);
  return std::find_if(list.begin(), list.end(),
                      [&](const Json& item) { return Segment(key, item) == segment; });
}

// A member of an item's key is removed only together with its item.
bool IsItemKey(const FieldPath& path) {
  if (path.size() < 2 || !IsItem(path[path.size() - 2])) {
    return false;
  }
  const ListKey key = KeyIn(path[path.size() - 2]);
  return std::find(key.begin(), key.end(), path.back()) != key.end();
}

void Collect(const Json& value, FieldPath& path, FieldSet& fields) {
  const ListKey key = value.is_array() ? KeyOf(value) : ListKey();
  if (value.is_object() && !value.empty()) {
    for (const auto& [name, member] : value.items()) {
      path.push_back(name);
      Collect(member, path, fields);
      path.pop_back();
    }
  } else if (!key.empty()) {
    for (const Json& item : value) {
      path.push_back(Segment(key, item));
      fields.insert(path);  // the item itself is owned too
      Collect(item, path, fields);
      path.pop_back();
    }
  } else {
    fields.insert(path);
  }
}

void Take(Json& live, const FieldPath& path, size_t depth) {
  const std::string& segment = path[depth];
  if (live.is_array() && IsItem(segment)) {
    const auto item = FindItem(live, segment);
    if (item == live.end()) {
      return;
    }
    if (depth + 1 == path.size()) {
      live.erase(item);
    } else {
      Take(*item, path, depth + 1);
    }
    return;
  }
  if (!live.is_object() || !live.contains(segment)) {
    return;
  }
  if (depth + 1 == path.size()) {
    live.erase(segment);
    return;
  }
  Json& member = live[segment];
  Take(member, path, depth + 1);
  if ((member.is_object() || member.is_array()) && member.empty()) {
    live.erase(segment);
  }
}

bool StartsWith(const FieldPath& path, const FieldPath& prefix) {
  return path.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

// A list item is removed only when no manager owns a field in it.
bool IsOwned(const FieldPath& path, const FieldSet& fields) {
  const auto at = fields.lower_bound(path);
  return at != fields.end() && StartsWith(*at, path);
}

void Merge(const Json& config, Json& live) {
  if (config.is_object() && live.is_object()) {
    for (const auto& [name, member] : config.items()) {
      if (live.contains(name)) {
        Merge(member, live[name]);
      } else {
        live[name] = member;
      }
    }
    return;
  }
  const ListKey key = config.is_array() && live.is_array() ? KeyOf(config) : ListKey();
  if (key.empty()) {
    live = config;
    return;
  }
  for (const Json& item : config) {
    const auto known = FindItem(live, Segment(key, item));
    if (known == live.end()) {
      live.push_back(item);
    } else {
      Merge(item, *known);
    }
  }
}

}  // namespace

FieldSet FieldsOf(const Json& config) {
  Json named = config;
  named.erase("apiVersion");
  named.erase("kind");
  if (named.contains("metadata")) {
    for (const char* identity : {"name", "namespace", "uid", "resourceVersion"}) {
      named["metadata"].erase(identity);
    }
    if (named["metadata"].empty()) {
      named.erase("metadata");
    }
  }
  FieldSet fields;
  FieldPath path;
  if (!named.empty()) {
    Collect(named, path, fields);
  }
  return fields;
}

void ApplyConfig(const std::string& manager, const Json& config, Json& live, FieldOwners& owners) {
  const FieldSet now = FieldsOf(config);
  const FieldSet before = owners[manager];
  owners[manager] = now;
  // Longest first: fields inside an item are removed before the item.
  for (auto path = before.rbegin(); path != before.rend(); ++path) {
    const bool stays = std::any_of(owners.begin(), owners.end(),
                                   [&](const auto& owner) { return IsOwned(*path, owner.second); });
    if (!stays && !IsItemKey(*path)) {
      Take(live, *path, 0);
    }
  }
  Merge(config, live);
}

}  // namespace cachewarm::fakes
