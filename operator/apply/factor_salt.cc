// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/factor_salt.h"

#include <sys/random.h>

#include <utility>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/base64.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/object.h"
#include "lib/kube/core/request.h"
#include "operator/factors/start_factors.h"

namespace cachewarm::apply {
namespace {

constexpr Duration kSaltRetry{60'000};

absl::StatusOr<std::string> RandomSalt() {
  std::string salt(factors::kSaltBytesMin, '\0');
  if (getrandom(salt.data(), salt.size(), 0) != static_cast<ssize_t>(salt.size())) {
    return absl::UnavailableError("the kernel returned no random bytes");
  }
  return salt;
}

}  // namespace

std::string FactorSalt::Get(std::stop_token stop) {
  std::lock_guard lock(mutex_);
  const MonoTime now = deps_.clock.Monotonic();
  if (!salt_.empty() || (failed_.has_value() && now < *failed_ + kSaltRetry)) {
    return salt_;
  }
  auto salt = ReadOrCreate(std::move(stop));
  if (salt.ok()) {
    salt_ = *std::move(salt);
    failed_.reset();
  } else {
    failed_ = now;
    if (std::string error = Message(salt.status()); error != logged_) {
      deps_.log.Warning(
          "no salt for the factors of starts, so that missed starts are not explained",
          {{"secret", deps_.ns + "/" + std::string(kSaltSecret)}, {"err", error}});
      logged_ = std::move(error);
    }
  }
  return salt_;
}

absl::StatusOr<std::string> FactorSalt::ReadOrCreate(std::stop_token stop) {
  const kube::ObjectName name{.ns = deps_.ns, .name = std::string(kSaltSecret)};
  auto read = deps_.client.Do(kube::Get(kube::kSecrets, name), stop);
  if (absl::IsNotFound(read.status())) {
    return absl::FailedPreconditionError(fmt::format(
        "Secret {}/{} does not exist; apply manifests/install.yaml or upgrade the chart", name.ns,
        name.name));
  }
  CW_RETURN_IF_ERROR(read.status());
  const auto stored = codec::DecodeBase64(codec::TextAt(*read, {"data", kSaltEntry}));
  if (stored.ok() && stored->size() >= factors::kSaltBytesMin) {
    return *stored;
  }
  if (!codec::TextAt(*read, {"data", kSaltEntry}).empty()) {
    return absl::FailedPreconditionError(
        fmt::format("data.{} is not the base64 text of at least {} bytes; remove it, so that the "
                    "operator creates another salt",
                    kSaltEntry, factors::kSaltBytesMin));
  }
  CW_ASSIGN_OR_RETURN(std::string salt, RandomSalt());
  codec::Json secret = *std::move(read);
  if (!secret["data"].is_object()) {
    secret["data"] = codec::Json::object();
  }
  secret["data"][std::string(kSaltEntry)] = codec::EncodeBase64(salt);
  // The resourceVersion makes the write fail if another replica created a salt meanwhile.
  CW_RETURN_IF_ERROR(deps_.client
                         .Do(kube::Update(kube::kSecrets, secret,
                                          {.field_manager = std::string(api::kOperatorManager)}),
                             std::move(stop))
                         .status());
  return salt;
}

}  // namespace cachewarm::apply
