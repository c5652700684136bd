// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/factor_salt.h"

#include <sys/random.h>

#include <utility>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/base/hmac.h"
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

bool FactorSalt::IsDue(const Attempt& attempt, std::optional<Duration> check) const {
  const std::optional<Duration> pause = attempt.done ? check : kSaltRetry;
  return !attempt.at.has_value() ||
         (pause.has_value() && deps_.clock.Monotonic() >= *attempt.at + *pause);
}

void FactorSalt::Record(Attempt& attempt, const absl::Status& status, std::string_view consequence,
                        std::string_view secret) {
  attempt.done = status.ok();
  attempt.at = deps_.clock.Monotonic();
  if (status.ok()) {
    attempt.logged.clear();
    return;
  }
  if (std::string error = Message(status); error != attempt.logged) {
    deps_.log.Warning(consequence,
                      {{"secret", fmt::format("{}/{}", deps_.ns, secret)}, {"err", error}});
    attempt.logged = std::move(error);
  }
}

std::string FactorSalt::Get(std::stop_token stop) {
  std::lock_guard lock(mutex_);
  if (IsDue(own_, std::nullopt)) {
    auto salt = ReadOrCreate(stop);
    Record(own_, salt.status(),
           "no salt for the factors of starts, so that missed starts are not explained",
           kSaltSecret);
    salt_ = std::move(salt).value_or("");
  }
  if (own_.done && IsDue(engine_, kEngineSaltCheck)) {
    Record(engine_, StoreEngineSalt(std::move(stop)),
           "cannot store the salt of the agents, which therefore compare no key factors of engines",
           kEngineSaltSecret);
  }
  return salt_;
}

absl::StatusOr<std::string> FactorSalt::ReadOrCreate(std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(codec::Json secret, Read(kSaltSecret, stop));
  const std::string text = codec::TextAt(secret, {"data", kSaltEntry});
  const auto stored = codec::DecodeBase64(text);
  if (stored.ok() && stored->size() >= factors::kSaltBytesMin) {
    return *stored;
  }
  if (!text.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("data.{} is not the base64 text of at least {} bytes; remove it, so that the "
                    "operator creates another salt",
                    kSaltEntry, factors::kSaltBytesMin));
  }
  CW_ASSIGN_OR_RETURN(std::string salt, RandomSalt());
  CW_RETURN_IF_ERROR(Write(std::move(secret), salt, std::move(stop)));
  return salt;
}

absl::Status FactorSalt::StoreEngineSalt(std::stop_token stop) {
  const std::string salt = DeriveEngineSalt(salt_);
  CW_ASSIGN_OR_RETURN(codec::Json secret, Read(kEngineSaltSecret, stop));
  if (codec::TextAt(secret, {"data", kSaltEntry}) == codec::EncodeBase64(salt)) {
    return absl::OkStatus();
  }
  return Write(std::move(secret), salt, std::move(stop));
}

absl::StatusOr<codec::Json> FactorSalt::Read(std::string_view secret, std::stop_token stop) {
  const kube::ObjectName name{.ns = deps_.ns, .name = std::string(secret)};
  auto read = deps_.client.Do(kube::Get(kube::kSecrets, name), std::move(stop));
  if (absl::IsNotFound(read.status())) {
    return absl::FailedPreconditionError(fmt::format(
        "Secret {}/{} does not exist; apply manifests/install.yaml or upgrade the chart", name.ns,
        name.name));
  }
  return read;
}

absl::Status FactorSalt::Write(codec::Json secret, std::string_view salt, std::stop_token stop) {
  if (!secret["data"].is_object()) {
    secret["data"] = codec::Json::object();
  }
  secret["data"][std::string(kSaltEntry)] = codec::EncodeBase64(salt);
  // The resourceVersion makes the write fail if another replica created a salt meanwhile.
  return deps_.client
      .Do(kube::Update(kube::kSecrets, secret,
                       {.field_manager = std::string(api::kOperatorManager)}),
          std::move(stop))
      .status();
}

std::string DeriveEngineSalt(std::string_view salt) {
  return HmacOf(salt, "engine").hex();
}

}  // namespace cachewarm::apply
