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

// What stands beside a registry with "token" authentication: a server of its own that signs tokens.
// User "warm" with password "secret" may pull and push, who shows no password may pull, and a wrong
// password gets nothing. On a free loopback port.
class TokenServer {
 public:
  static constexpr char kService[] = "registry.test";
  static constexpr char kIssuer[] = "tokens.test";
  // How long a registry takes a token after its end.
  static constexpr std::chrono::seconds kLeeway{60};

  TokenServer();

  // "http://127.0.0.1:41234/token"
  std::string realm() const;
  // PEM; a registry that trusts it takes the tokens.
  std::string certificate_file() const { return folder_ / "signer.crt"; }
  // Of the tokens from now on. Negative: they are at their end when they are made.
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
