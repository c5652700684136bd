// SPDX-License-Identifier: Apache-2.0
#include "operator/factors/start_factors.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/base/hmac.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/factors/relevance.h"

namespace cachewarm::factors {
namespace {

using codec::Json;

constexpr size_t kNameBytesMax = 128;
constexpr size_t kTextBytesMax = 256;  // of a value that is not hashed
// 64 bits: nobody who lacks the salt can compute one, and two values of one factor do not collide.
constexpr size_t kHashDigits = 16;
// Flags whose names are shown. A longer word may contain a value.
constexpr size_t kFlagBytesMax = 64;

const Json& MemberOf(const Json& object, std::string_view name) {
  static const Json* const absent = new Json();
  if (!object.is_object()) {
    return *absent;
  }
  const auto found = object.find(name);
  return found == object.end() ? *absent : *found;
}

const Json& ListIn(const Json& object, std::string_view name) {
  static const Json* const empty = new Json(Json::array());
  const Json& found = MemberOf(object, name);
  return found.is_array() ? found : *empty;
}

std::string TextIn(const Json& object, std::string_view name) {
  const Json& found = MemberOf(object, name);
  return found.is_string() ? found.get<std::string>() : std::string();
}

// Hashes values with the salt. The name of the factor is hashed too, so that equal values of two
// factors do not look equal.
class Hasher {
 public:
  explicit Hasher(std::string_view salt) : salt_(salt) {}

  std::string Of(std::string_view name, std::string_view value) const {
    return fmt::format("{}{}", kHashed, Digits(fmt::format("{}={}", name, value)));
  }
  std::string Id() const { return Digits("salt").substr(0, 8); }

 private:
  std::string Digits(std::string_view text) const {
    return HmacOf(salt_, text).hex().substr(0, kHashDigits);
  }

  std::string_view salt_;
};

// Fields that Kubernetes sets to a value of each pod or node.
std::string_view ScopeOf(std::string_view field) {
  for (const std::string_view per_pod :
       {"metadata.name", "metadata.uid", "status.podIP", "status.podIPs"}) {
    if (field == per_pod) {
      return kPodPrefix;
    }
  }
  for (const std::string_view per_node : {"spec.nodeName", "status.hostIP", "status.hostIPs"}) {
    if (field == per_node) {
      return kNodePrefix;
    }
  }
  return "";
}

// Returns the beginning of `text`, at most kTextBytesMax bytes. Ends before a character that does
// not fit, because JSON cannot hold a part of one.
std::string_view BeginningOf(std::string_view text) {
  size_t end = std::min(text.size(), kTextBytesMax);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  return text.substr(0, end);
}

// Reads one container.
class Reader {
 public:
  Reader(const Hasher& hasher, StartFactors& out) : hasher_(hasher), out_(out) {}

  void Read(const Json& container) {
    for (const Json& variable : ListIn(container, "env")) {
      ReadVariable(variable);
    }
    ReadWords(container);
    if (!ListIn(container, "envFrom").empty()) {
      Add("envFrom", hasher_.Of("envFrom", codec::DumpJson(MemberOf(container, "envFrom"))));
    }
    AddText("mountPath", TextIn(container, "mountPath"));
    AddText(kImageIdFactor, TextIn(container, kImageIdFactor));
  }

  void AddText(std::string_view name, std::string_view value) {
    if (!value.empty()) {
      Add(std::string(name), std::string(BeginningOf(value)));
    }
  }

 private:
  void Add(std::string name, std::string value) {
    name.resize(std::min(name.size(), kNameBytesMax));
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c < '!' || c > '~'; }, '?');
    const bool is_per_pod = value.starts_with(kPodPrefix) || value.starts_with(kNodePrefix);
    if (KnowledgeOf(name, is_per_pod).relevance != Relevance::kNone) {
      out_[std::move(name)] = std::move(value);
    }
  }

  void ReadVariable(const Json& variable) {
    const std::string name = TextIn(variable, "name");
    const std::string factor = "env/" + name;
    const Json& source = MemberOf(variable, "valueFrom");
    const std::string field = TextIn(MemberOf(source, "fieldRef"), "fieldPath");
    if (const std::string_view scope = ScopeOf(field); !scope.empty()) {
      changing_[name] = fmt::format("{}{}", scope, field);
      Add(factor, changing_[name]);
      return;
    }
    const std::string value =
        source.is_object() ? codec::DumpJson(source) : TextIn(variable, "value");
    if (const std::string changing = ChangingIn(value); !changing.empty()) {
      changing_[name] = changing;
    }
    Add(factor, ValueOf(factor, value));
  }

  // Returns the first value of a pod or node that `text` inserts as $(NAME); empty if none.
  std::string ChangingIn(std::string_view text) const {
    for (size_t at = 0; (at = text.find("$(", at)) != std::string_view::npos; at += 2) {
      const size_t end = text.find(')', at);
      if (end == std::string_view::npos) {
        break;
      }
      if (const auto found = changing_.find(text.substr(at + 2, end - at - 2));
          found != changing_.end()) {
        return found->second;
      }
    }
    return "";
  }

  std::string ValueOf(std::string_view factor, std::string_view text) const {
    const std::string changing = ChangingIn(text);
    return changing.empty() ? hasher_.Of(factor, text) : changing;
  }

  // Returns the name of the flag: "--model", "-m"; empty if the word is none.
  static std::string_view FlagIn(std::string_view word) {
    const std::string_view name = word.substr(0, word.find('='));
    const auto is_plain = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    };
    const bool is_long = name.starts_with("--") && name.size() > 2 && name.size() <= kFlagBytesMax;
    const bool is_short = word.size() == 2 && word[0] == '-';
    const bool is_flag = (is_long || is_short) &&
                         std::isalpha(static_cast<unsigned char>(name[is_long ? 2 : 1])) != 0 &&
                         std::all_of(name.begin(), name.end(), is_plain);
    return is_flag ? name : std::string_view();
  }

  // "--model x" and "--model=x" give equal factors.
  void ReadWords(const Json& container) {
    std::map<std::string, std::vector<std::string>> values;  // by factor
    std::string flag;                                        // waits for its value
    int position = 0;
    for (const char* list : {"command", "args"}) {
      for (const Json& each : ListIn(container, list)) {
        const std::string word = each.is_string() ? each.get<std::string>() : std::string();
        const std::string_view name = FlagIn(word);
        if (name.empty()) {
          const std::string factor =
              flag.empty() ? fmt::format("args/{}", ++position) : std::exchange(flag, "");
          values[factor].push_back(word);
          continue;
        }
        flag = fmt::format("args/{}", name);
        auto& own = values[flag];
        if (name.size() < word.size()) {
          own.push_back(word.substr(name.size() + 1));
          flag.clear();
        }
      }
    }
    for (const auto& [factor, words] : values) {
      Add(factor, ValueOf(factor, codec::DumpJson(words)));
    }
  }

  const Hasher& hasher_;
  StartFactors& out_;
  // Values of each pod or node, by variable.
  std::map<std::string, std::string, std::less<>> changing_;
};

bool IsPerPod(std::string_view value) {
  return value.starts_with(kPodPrefix) || value.starts_with(kNodePrefix);
}

// Removes the least relevant factors until the rest fits beside the factors that FactorsOf() adds.
void Cut(StartFactors& factors) {
  constexpr size_t kFactorsKept = api::kStartFactorsMax - 4;
  constexpr size_t kBytesKept = kFactorBytesMax - 512;
  size_t bytes = 0;
  for (const auto& [name, value] : factors) {
    bytes += name.size() + value.size();
  }
  bool is_cut = false;
  for (const Relevance least : {Relevance::kPossible, Relevance::kLikely, Relevance::kKey}) {
    for (auto at = factors.end(); at != factors.begin();) {
      if (factors.size() <= kFactorsKept && bytes <= kBytesKept) {
        break;
      }
      --at;
      if (KnowledgeOf(at->first, IsPerPod(at->second)).relevance == least) {
        bytes -= at->first.size() + at->second.size();
        at = factors.erase(at);
        is_cut = true;
      }
    }
  }
  if (is_cut) {
    factors[std::string(kCutFactor)] = "1";
  }
}

}  // namespace

Json StartedContainersOf(const Json& pod) {
  Json out = Json::array();
  for (const Json& container : ListIn(MemberOf(pod, "spec"), "containers")) {
    const std::string name = TextIn(container, "name");
    Json kept = {{"name", name}};
    for (const char* part : {"command", "args", "env", "envFrom"}) {
      if (const Json& found = MemberOf(container, part); found.is_array() && !found.empty()) {
        kept[part] = found;
      }
    }
    for (const Json& mount : ListIn(container, "volumeMounts")) {
      if (TextIn(mount, "name") == api::kVolume) {
        kept["mountPath"] = TextIn(mount, "mountPath");
      }
    }
    for (const Json& status : ListIn(MemberOf(pod, "status"), "containerStatuses")) {
      if (const std::string id = TextIn(status, "imageID");
          !id.empty() && TextIn(status, "name") == name) {
        kept["imageID"] = id;
      }
    }
    out.push_back(std::move(kept));
  }
  return out;
}

const Json* FindStartedContainer(const Json& pod, std::string_view container) {
  for (const Json& each : ListIn(pod, kStartedContainers)) {
    if (TextIn(each, "name") == container) {
      return &each;
    }
  }
  return nullptr;
}

StartFactors FactorsOf(const StartedPod& pod, std::string_view node, std::string_view salt) {
  StartFactors out;
  if (salt.size() < kSaltBytesMin || pod.container == nullptr) {
    return out;
  }
  const Hasher hasher(salt);
  Reader reader(hasher, out);
  reader.Read(*pod.container);
  reader.AddText("image", pod.image);
  reader.AddText("devices", std::to_string(pod.devices));
  reader.AddText("container", pod.container_name);
  reader.AddText("gpuType", pod.gpu_type);
  reader.AddText("cpuClass", pod.cpu_class);
  reader.AddText("driver", pod.driver);
  if (pod.image.find('@') != std::string::npos) {
    out.erase(std::string(kImageIdFactor));  // the digest in the name is the content
  }
  Cut(out);
  out[std::string(kSaltFactor)] = hasher.Id();
  out[std::string(kRulesFactor)] = kRulesVersion;
  out[std::string(kNodeFactor)] = std::string(node);
  return out;
}

std::vector<api::StartFactor> Encode(const StartFactors& factors) {
  std::vector<api::StartFactor> out;
  out.reserve(factors.size());
  for (const auto& [name, value] : factors) {
    out.push_back({.name = name, .value = value});
  }
  return out;
}

StartFactors Decode(const std::vector<api::StartFactor>& factors) {
  StartFactors out;
  for (const api::StartFactor& each : factors) {
    out[each.name] = each.value;
  }
  return out;
}

}  // namespace cachewarm::factors
