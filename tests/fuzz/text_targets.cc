// SPDX-License-Identifier: Apache-2.0
// Targets that parse one line: names, references, times, quantities and addresses.
#include <string>

#include "cli/cluster/named_object.h"
#include "cli/reference.h"
#include "lib/api/kubernetes.h"
#include "lib/api/names.h"
#include "lib/base/clock.h"
#include "lib/bundle/store/key_tag.h"
#include "lib/bundle/store/open.h"
#include "lib/bundle/store/registry/name_list.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/gate/core/held.h"
#include "lib/http/proxy.h"
#include "lib/http/text/retry_after.h"
#include "lib/kube/core/error.h"
#include "lib/kube/core/object.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {
namespace {

bool FitsIntoAHeader(std::string_view text) {
  return text.find_first_of("\r\n ") == std::string_view::npos;
}

}  // namespace

// Input: a time, a quantity, or an annotation of a held pod.
void TimeOrQuantity(std::string_view bytes) {
  if (const auto time = ParseTime(bytes); time.ok()) {
    const auto again = ParseTime(FormatMicroTime(*time));
    Require(again.ok() && *again == *time, "a written time reads the same");
  }
  static_cast<void>(http::ParseHttpDate(bytes));
  const auto whole = api::ParseQuantity(bytes, false);
  const auto milli = api::ParseQuantity(bytes, true);
  Require(whole.ok() == milli.ok(), "the unit does not decide whether a text is a quantity");
  if (whole.ok() && *whole > 0 && *whole < 1'000'000'000'000) {
    // Digits beyond 64 bits are approximated.
    Require(*milli <= *whole * 1001 && *milli >= (*whole - 2) * 999,
            "units and thousandths of units agree");
  }
  api::Pod pod;
  pod.meta.created = WallTime(Duration(1'790'000'000'000));
  pod.meta.annotations[std::string(api::kHeldUntilAnnotation)] = std::string(bytes);
  pod.meta.annotations[std::string(api::kHeldSecondsAnnotation)] = std::string(bytes);
  Require(gate::Deadline(pod, Duration(60'000)) <= pod.meta.created + gate::kMaxHold,
          "an annotation does not hold a pod longer than an hour");
  const double seconds = gate::HeldSecondsOf(pod);
  Require(seconds >= 0 && seconds < 86'400, "a pod was held for less than a day");
}

// Input: the name of a bundle, a store, a proxy, an object or a tag.
void Reference(std::string_view bytes) {
  if (const auto reference = cli::Reference::Parse(bytes); reference.ok()) {
    const auto again = cli::Reference::Parse(reference->ToString());
    Require(again.ok() && again->repository == reference->repository &&
                again->store_url == reference->store_url,
            "a written reference reads the same");
  }
  for (const auto& store : {bundle::ParseStoreUrl(bytes), bundle::ParseMirror(bytes)}) {
    Require(!store.ok() || (FitsIntoAHeader(store->host) &&
                            store->host.empty() == store->directory.starts_with('/')),
            "a store has a host or an absolute directory");
  }
  if (const auto proxy = http::ParseProxy(bytes); proxy.ok()) {
    Require(proxy->port != 0 && FitsIntoAHeader(proxy->host), "a proxy has a host and a port");
  }
  if (const auto rules = http::ProxyRules::Make(
          {.https = "http://proxy.local:3128", .no_proxy = std::string(bytes)});
      rules.ok()) {
    for (const char* url : {"https://10.1.2.3:5000/", "https://[fd00::1]/", "https://a.b.local/"}) {
      static_cast<void>(rules->For(*http::Url::Parse(url)));
    }
  }
  if (const auto tag = bundle::ParseKeyTag(bytes); tag.has_value()) {
    Require(bytes.starts_with(bundle::KeyTagOf(tag->key)), "a tag begins with the tag of its key");
  }
  if (const auto name = kube::ObjectName::Parse(bytes); name.ok()) {
    const auto again = kube::ObjectName::Parse(name->ToString());
    Require(again.ok() && *again == *name, "a written name reads the same");
  }
  if (const auto digest = Digest::Parse(bytes); digest.ok()) {
    Require(digest->ToString() == bytes, "a written digest is the same");
  }
  static_cast<void>(cli::ParseNamedObject(bytes));
}

// Input: an error of the API server (metav1.Status), or a page of a registry's list.
void ServerAnswer(std::string_view bytes) {
  static_cast<void>(bundle::ParseNameList(bytes, "tags"));
  const auto json = codec::ParseJson(bytes, {.bytes_max = 1U << 20U});
  if (!json.ok()) {
    return;
  }
  for (const int code : {0, 200, 404, 409, 429, 503}) {
    const kube::ApiError error = kube::ParseApiError(*json, code);
    const absl::Status status = kube::ToStatus(error);
    Require(!status.ok(), "an error is not OK");
    Require(kube::HttpCodeOf(status) == error.code && kube::ReasonOf(status) == error.reason,
            "code and reason can be read from the status");
    const auto wait = http::RetryAfterOf(status);
    Require(!wait.has_value() || *wait <= std::chrono::hours(1), "a wait is at most an hour");
  }
}

}  // namespace cachewarm::fuzz
