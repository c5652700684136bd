// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/http/client.h"
#include "lib/kube/client/config.h"
#include "lib/kube/kubeconfig/plugin_process.h"

namespace cachewarm::kube {

// Returns a client for requests to the API server of `config`, with its TLS settings and its proxy.
// If `config` has no proxy, uses `options.proxy`. If the user of `config` has a credential plugin
// and no token, runs the plugin before the first request, after the expiry of its credentials, and
// once more when the server answers 401; then sends that request again. A client certificate of
// `config` wins over that of the plugin. Errors of requests are then also those of PluginSession.
// `clock` must outlive the client. Errors: those of http::MakeClient().
absl::StatusOr<std::unique_ptr<http::Client>> MakePluginHttpClient(const ClusterConfig& config,
                                                                   http::ClientOptions options,
                                                                   PluginContext context,
                                                                   const Clock& clock);

}  // namespace cachewarm::kube
