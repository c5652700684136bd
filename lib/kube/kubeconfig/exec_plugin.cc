// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/kubeconfig/exec_plugin.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

constexpr char kExecCredential[] = "ExecCredential";
constexpr size_t kTokenBytesMax = 256U << 10U;
constexpr size_t kPemTextBytesMax = 512U << 10U;
constexpr codec::JsonLimits kOutputLimits{
    .bytes_max = 1U << 20U, .depth_max = 16, .values_max = 1000};

void ReadStatus(codec::Reader& status, PluginCredentials& to) {
  std::string expires;
  status.Read("token", to.token, kTokenBytesMax)
      .Read("clientCertificateData", to.certificate_pem, kPemTextBytesMax)
      .Read("clientKeyData", to.key_pem, kPemTextBytesMax)
      .Read("expirationTimestamp", expires);
  if (const absl::Status valid = CheckToken(to.token); !valid.ok()) {
    status.Fail("token", Message(valid));
  }
  if (to.certificate_pem.empty() != to.key_pem.empty()) {
    status.Fail(to.key_pem.empty() ? "clientKeyData" : "clientCertificateData",
                "is missing: certificate and key belong together");
  } else if (to.token.empty() && to.certificate_pem.empty()) {
    status.Fail("token", "is missing, and there is no clientCertificateData either");
  }
  if (expires.empty()) {
    return;
  }
  absl::StatusOr<WallTime> time = ParseTime(expires);
  if (!time.ok()) {
    status.Fail("expirationTimestamp", Message(time.status()));
    return;
  }
  to.expires = *time;
}

}  // namespace

std::string ExecInfo(const ExecPlugin& plugin, bool is_interactive) {
  Json info = {{"kind", kExecCredential},
               {"apiVersion", plugin.api_version},
               {"spec", {{"interactive", is_interactive}}}};
  if (!plugin.cluster.empty()) {
    info["spec"]["cluster"] = codec::ParseJson(plugin.cluster).value_or(Json::object());
  }
  return codec::DumpJson(info);
}

absl::Status CheckToken(std::string_view token) {
  const bool is_visible =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  return is_visible ? absl::OkStatus()
                    : absl::InvalidArgumentError("contains a character that no token may contain");
}

absl::StatusOr<PluginCredentials> ParseExecCredential(const ExecPlugin& plugin,
                                                      std::string_view output) {
  const absl::StatusOr<Json> parsed = codec::ParseJson(output, kOutputLimits);
  if (!parsed.ok()) {
    // The message of the parser might quote a part of a token.
    return absl::InvalidArgumentError(fmt::format(
        "the output is not a JSON object of at most {} bytes", kOutputLimits.bytes_max));
  }
  PluginCredentials credentials;
  std::string kind;
  std::string version;
  codec::Reader reader(*parsed, "");
  reader.Read("kind", kind).Read("apiVersion", version);
  if (reader.status().ok() && kind != kExecCredential) {
    reader.Fail("kind", "expected ExecCredential");
  } else if (reader.status().ok() && version != plugin.api_version) {
    reader.Fail("apiVersion", fmt::format("expected {}, as in the kubeconfig, not \"{}\"",
                                          plugin.api_version, version.substr(0, 100)));
  }
  reader.Require("status").Object("status",
                                  [&](codec::Reader& status) { ReadStatus(status, credentials); });
  CW_RETURN_IF_ERROR(reader.status());
  return credentials;
}

}  // namespace cachewarm::kube
