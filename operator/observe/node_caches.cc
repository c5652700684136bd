// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/node_caches.h"

#include <algorithm>
#include <utility>

#include "lib/api/reasons.h"
#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::observe {
namespace {

using codec::Json;
using codec::PackedValue;

std::set<NamedWarmup> NamedBy(const kube::Object& node_cache) {
  std::set<NamedWarmup> named;
  if (node_cache != nullptr) {
    for (const Json& entry : codec::ListAt(*node_cache, {"spec", "warmups"})) {
      named.insert({.ns = codec::TextAt(entry, {"namespace"}),
                    .name = codec::TextAt(entry, {"name"}),
                    .uid = codec::TextAt(entry, {"uid"})});
    }
  }
  return named;
}

// By warmup uid: digests of bundles that the agent need not fetch any more, because it has
// activated them or they have failed permanently. A fetch that failed on a store error is still
// pending, because the agent retries it and the node keeps its fetch slot
// (operator/plan/distribution/fetch_slots.h).
using BundlesByWarmup = std::map<std::string, std::set<std::string>>;

BundlesByWarmup CompletedBundles(const Json& node_cache) {
  BundlesByWarmup completed;
  for (const Json& entry : codec::ListAt(node_cache, {"status", "warmups"})) {
    for (const Json& bundle : codec::ListAt(entry, {"bundles"})) {
      const std::string state = codec::TextAt(bundle, {"state"});
      if (state == api::Name(api::BundleState::kActive) ||
          (state == api::Name(api::BundleState::kFailed) &&
           codec::TextAt(bundle, {"reason"}) != api::reason::kFetchFailed)) {
        completed[codec::TextAt(entry, {"uid"})].insert(codec::TextAt(bundle, {"digest"}));
      }
    }
  }
  return completed;
}

std::set<std::string> PendingWarmups(const Json& node_cache) {
  std::set<std::string> pending;
  const BundlesByWarmup completed = CompletedBundles(node_cache);
  for (const Json& entry : codec::ListAt(node_cache, {"spec", "warmups"})) {
    const std::string uid = codec::TextAt(entry, {"uid"});
    const auto found = completed.find(uid);
    for (const Json& bundle : codec::ListAt(entry, {"bundles"})) {
      if (found == completed.end() || !found->second.contains(codec::TextAt(bundle, {"digest"}))) {
        pending.insert(uid);
      }
    }
  }
  return pending;
}

// Returns `part` (spec or status) of a NodeCache, but in its list of warmups only the entries whose
// uid is in `wanted`.
Json Share(const PackedValue& part, const std::set<std::string>& wanted) {
  Json out = Json::object();
  for (const char* whole : {"captures", "starts", "node", "heartbeatTime"}) {
    if (const PackedValue member = part.At({whole}); !member.is_null()) {
      out[whole] = member.Unpack();
    }
  }
  for (const PackedValue& entry : part.At({"warmups"}).Items()) {
    if (wanted.contains(std::string(entry.TextAt({"uid"})))) {
      out["warmups"].push_back(entry.Unpack());
    }
  }
  return out;
}

}  // namespace

NodeCaches::Value NodeCaches::Decode(const std::string& node, const Json& object) const {
  auto decoded = api::DecodeNodeCache(object);
  if (decoded.ok()) {
    return std::make_shared<const api::NodeCache>(*std::move(decoded));
  }
  const std::string version = kube::ResourceVersionOf(object);
  std::lock_guard lock(mutex_);
  if (std::exchange(undecodable_[node], version) != version) {
    log_.Warning("cannot decode object",
                 {{"kind", "NodeCache"}, {"name", node}, {"err", Message(decoded.status())}});
  }
  return nullptr;
}

NodeCaches::Value NodeCaches::Get(const std::string& node) const {
  const kube::Object object = store_.Get({.name = node});
  return object == nullptr ? nullptr : Decode(node, *object);
}

NodeCaches::Value NodeCaches::ShareOf(const std::string& warmup_uid,
                                      const std::string& node) const {
  const kube::CachedObjectPtr cached = store_.Find({.name = node});
  if (cached == nullptr) {
    return nullptr;
  }
  std::set<std::string> wanted;
  {
    std::lock_guard lock(mutex_);
    if (const auto pending = pending_.find(node); pending != pending_.end()) {
      wanted = pending->second;
    }
  }
  wanted.insert(warmup_uid);
  const PackedValue whole = cached->value();
  return Decode(node, Json{{"metadata", whole.At({"metadata"}).Unpack()},
                           {"spec", Share(whole.At({"spec"}), wanted)},
                           {"status", Share(whole.At({"status"}), wanted)}});
}

size_t NodeCaches::CountOf(const std::string& node) const {
  const kube::CachedObjectPtr cached = store_.Find({.name = node});
  return cached == nullptr ? 0 : cached->value().At({"spec", "warmups"}).Items().size();
}

std::set<NamedWarmup> NodeCaches::Named() const {
  std::lock_guard lock(mutex_);
  std::set<NamedWarmup> named;
  for (const auto& [warmup, count] : named_) {
    named.insert(warmup);
  }
  return named;
}

std::vector<std::string> NodeCaches::UidsOf(const std::string& ns, const std::string& name) const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> uids;
  for (auto at = named_.lower_bound({.ns = ns, .name = name, .uid = {}});
       at != named_.end() && at->first.ns == ns && at->first.name == name; ++at) {
    uids.push_back(at->first.uid);
  }
  return uids;
}

void NodeCaches::Apply(const kube::Change& change) {
  const std::string node = kube::NameOf(change.object()).name;
  const std::set<NamedWarmup> before = NamedBy(change.before);
  const std::set<NamedWarmup> after = NamedBy(change.after);
  std::set<std::string> pending =
      change.after == nullptr ? std::set<std::string>() : PendingWarmups(*change.after);
  std::lock_guard lock(mutex_);
  for (const NamedWarmup& warmup : after) {
    ++named_[warmup];
  }
  for (const NamedWarmup& warmup : before) {
    if (--named_[warmup] == 0) {
      named_.erase(warmup);
    }
  }
  pending_.erase(node);
  if (!pending.empty()) {
    pending_.emplace(node, std::move(pending));
  }
  if (change.after == nullptr) {
    undecodable_.erase(node);
  }
}

}  // namespace cachewarm::observe
