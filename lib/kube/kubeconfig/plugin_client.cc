// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/kubeconfig/plugin_client.h"

#include <mutex>
#include <utility>

#include "lib/base/status.h"
#include "lib/kube/kubeconfig/plugin_session.h"

namespace cachewarm::kube {
namespace {

// Adds the credentials of a plugin to every request.
class PluginHttpClient final : public http::Client {
 public:
  PluginHttpClient(std::shared_ptr<const ExecPlugin> plugin, http::ClientOptions options,
                   PluginContext context, const Clock& clock)
      : options_(std::move(options)), session_(std::move(plugin), std::move(context), clock) {}

  absl::StatusOr<http::Response> Send(const http::Request& request, std::stop_token stop) override {
    return SendWithCredentials(request, stop,
                               [&stop](http::Client& client, const http::Request& message) {
                                 return client.Send(message, stop);
                               });
  }

  absl::StatusOr<http::Response> Stream(const http::Request& request, http::BodySink& sink,
                                        std::stop_token stop) override {
    return SendWithCredentials(request, stop,
                               [&stop, &sink](http::Client& client, const http::Request& message) {
                                 return client.Stream(message, sink, stop);
                               });
  }

 private:
  template <typename SendTo>
  absl::StatusOr<http::Response> SendWithCredentials(const http::Request& request,
                                                     const std::stop_token& stop,
                                                     const SendTo& send) {
    for (bool may_renew = request.source == nullptr;; may_renew = false) {
      CW_ASSIGN_OR_RETURN(const PluginSession::Credentials used, session_.Get(stop));
      CW_ASSIGN_OR_RETURN(const std::shared_ptr<http::Client> client, ClientFor(*used));
      http::Request message = request;
      if (!used->token.empty()) {
        message.headers.Set("Authorization", "Bearer " + used->token);
      }
      absl::StatusOr<http::Response> response = send(*client, message);
      if (!response.ok()) {
        return response;
      }
      if (response->status != 401) {
        session_.Accept(used);
        return response;
      }
      if (!may_renew) {
        return response;
      }
      CW_ASSIGN_OR_RETURN(const bool has_other, session_.Renew(used, stop));
      if (!has_other) {
        return response;
      }
    }
  }

  // Returns a client with the certificate of the credentials. Its connections are kept until the
  // certificate changes.
  absl::StatusOr<std::shared_ptr<http::Client>> ClientFor(const PluginCredentials& credentials) {
    const std::lock_guard lock(mutex_);
    if (client_ != nullptr && certificate_pem_ == credentials.certificate_pem) {
      return client_;
    }
    http::ClientOptions options = options_;
    if (options.tls.certificate_file.empty() && options.tls.certificate_pem.empty()) {
      options.tls.certificate_pem = credentials.certificate_pem;
      options.tls.key_pem = credentials.key_pem;
    }
    absl::StatusOr<std::unique_ptr<http::Client>> client = http::MakeClient(options);
    if (!client.ok()) {
      return PluginError(session_.plugin(),
                         Annotate(client.status(), "its certificate is not usable"));
    }
    client_ = *std::move(client);
    certificate_pem_ = credentials.certificate_pem;
    return client_;
  }

  const http::ClientOptions options_;
  PluginSession session_;
  std::mutex mutex_;
  std::shared_ptr<http::Client> client_;  // a running request keeps the previous one
  std::string certificate_pem_;           // of client_
};

}  // namespace

absl::StatusOr<std::unique_ptr<http::Client>> MakePluginHttpClient(const ClusterConfig& config,
                                                                   http::ClientOptions options,
                                                                   PluginContext context,
                                                                   const Clock& clock) {
  options.tls = config.tls;
  if (!config.proxy.empty()) {
    options.proxy.always = config.proxy;
  }
  // Also checks the options if a plugin adds a certificate later.
  CW_ASSIGN_OR_RETURN(std::unique_ptr<http::Client> client, http::MakeClient(options));
  if (config.plugin == nullptr || !config.token.empty() || !config.token_file.empty()) {
    return client;
  }
  return std::make_unique<PluginHttpClient>(config.plugin, std::move(options), std::move(context),
                                            clock);
}

}  // namespace cachewarm::kube
