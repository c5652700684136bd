// SPDX-License-Identifier: Apache-2.0
#include "lib/http/text/url.h"
#include "lib/kube/kubeconfig/exec_plugin.h"
#include "lib/kube/kubeconfig/selection.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {

void Kubeconfig(std::string_view bytes) {
  kube::Kubeconfig merged;
  if (!kube::MergeKubeconfig(bytes, "/none/config", merged).ok()) {
    return;
  }
  const size_t users = merged.users.size();
  Require(kube::MergeKubeconfig(bytes, "/none/second", merged).ok() && merged.users.size() == users,
          "a second definition of a name adds nothing");
  for (const auto& [name, context] : merged.contexts) {
    const auto config = kube::SelectCluster(merged, {.context = name});
    if (!config.ok()) {
      continue;
    }
    Require(http::Url::Parse(config->server).ok(), "the server is a URL");
    Require(kube::CheckToken(config->token).ok(), "the token fits into a header");
    for (const auto& [field, value] : config->headers) {
      Require(field.find_first_of("\r\n: ") == std::string::npos &&
                  value.find_first_of("\r\n") == std::string::npos,
              "impersonation fits into headers");
    }
    if (config->plugin != nullptr) {
      Require(!config->plugin->command.empty() && !kube::ExecInfo(*config->plugin, true).empty(),
              "a plugin can be started");
    }
  }
}

void ExecCredential(std::string_view bytes) {
  for (const char* version :
       {"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"}) {
    const auto parsed = kube::ParseExecCredential({.api_version = version}, bytes);
    Require(!parsed.ok() || (kube::CheckToken(parsed->token).ok() &&
                             parsed->certificate_pem.empty() == parsed->key_pem.empty() &&
                             !(parsed->token.empty() && parsed->key_pem.empty())),
            "credentials are complete and fit into a header");
  }
}

}  // namespace cachewarm::fuzz
