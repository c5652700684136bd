// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/http/server.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::bundle {

// Signs tokens for a registry with "token" authentication, on a free loopback port. User "warm"
// with password "secret" may pull and push, anonymous users may pull, a wrong password is rejected.
class TokenServer {
 public:
  static constexpr char kService[] = "registry.test";
  static constexpr char kIssuer[] = "tokens.test";
  // Time for which a registry accepts an expired token.
  static constexpr std::chrono::seconds kLeeway{60};

  TokenServer();

  // "http://127.0.0.1:41234/token"
  std::string realm() const;
  // PEM file of the certificate that the registry must trust.
  std::string certificate_file() const { return folder_ / "signer.crt"; }
  // Lifetime of the following tokens. Negative: they are expired when issued.
  void SetLifetime(std::chrono::seconds lifetime);

  struct Question {
    std::vector<std::string> scopes;  // "repository:team/llama:pull,push"
    std::string authorization;
  };
  std::vector<Question> asked() const;

 private:
  http::ServerResponse Answer(const http::ServerRequest& request);
  std::string Token(const std::vector<std::string>& scopes, bool may_push) const;
  std::string Sign(const std::string& text) const;

  const TempDir folder_;
  std::string certificate_;  // base64 of its DER
  mutable std::mutex mutex_;
  std::chrono::seconds lifetime_{300};
  std::vector<Question> asked_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace cachewarm::bundle
