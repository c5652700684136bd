// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/store/token_server.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "lib/codec/base64.h"

namespace cachewarm::bundle {
namespace {

constexpr int kUnauthorized = 401;
constexpr char kPassword[] = "Basic d2FybTpzZWNyZXQ=";  // warm:secret

void Openssl(const std::string& arguments) {
  ASSERT_EQ(std::system(("openssl " + arguments + " 2>/dev/null").c_str()), 0) << arguments;
}

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// base64url without padding (RFC 7515 §2).
std::string Base64Url(std::string_view bytes) {
  std::string text = codec::EncodeBase64(bytes);
  for (char& c : text) {
    c = c == '+' ? '-' : c == '/' ? '_' : c;
  }
  return text.substr(0, text.find('='));
}

std::string PercentDecoded(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain.push_back(
          static_cast<char>(std::strtol(std::string(text.substr(i + 1, 2)).c_str(), nullptr, 16)));
      i += 2;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

std::vector<std::string> ValuesOf(std::string_view query, const std::string& name) {
  std::vector<std::string> values;
  while (!query.empty()) {
    const std::string_view field = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(field.size() + 1, query.size()));
    if (field.starts_with(name + "=")) {
      values.push_back(PercentDecoded(field.substr(name.size() + 1)));
    }
  }
  return values;
}

// Returns {"type":"repository","name":"team/llama","actions":["pull"]} for
// "repository:team/llama:pull".
std::string AccessOf(const std::string& scope, bool may_push) {
  const size_t name = scope.find(':') + 1;
  const size_t actions = scope.rfind(':') + 1;
  const bool pushes = may_push && scope.find("push", actions) != std::string::npos;
  return fmt::format(R"({{"type":"repository","name":"{}","actions":["pull"{}]}})",
                     scope.substr(name, actions - 1 - name), pushes ? R"(,"push")" : "");
}

}  // namespace

TokenServer::TokenServer() {
  Openssl(
      fmt::format("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=signer -keyout {0}.key "
                  "-out {0}.crt",
                  folder_ / "signer"));
  Openssl(fmt::format("x509 -in {0}.crt -outform DER -out {0}.der", folder_ / "signer"));
  certificate_ = codec::EncodeBase64(BytesOf(folder_ / "signer.der"));
  auto server = http::StartServer(
      {.address = "127.0.0.1"},
      {{"/token", [this](const http::ServerRequest& request) { return Answer(request); }}});
  EXPECT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
}

std::string TokenServer::realm() const {
  return fmt::format("http://127.0.0.1:{}/token", server_->port());
}

void TokenServer::SetLifetime(std::chrono::seconds lifetime) {
  const std::lock_guard lock(mutex_);
  lifetime_ = lifetime;
}

std::vector<TokenServer::Question> TokenServer::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

http::ServerResponse TokenServer::Answer(const http::ServerRequest& request) {
  const std::lock_guard lock(mutex_);
  asked_.push_back({.scopes = ValuesOf(request.query, "scope"),
                    .authorization = request.headers.Find("Authorization").value_or("")});
  const Question& question = asked_.back();
  const bool is_known = question.authorization == kPassword;
  if (!is_known && !question.authorization.empty()) {
    return {.status = kUnauthorized, .body = "wrong password"};
  }
  EXPECT_EQ(ValuesOf(request.query, "service"), std::vector<std::string>{kService});
  return {.content_type = "application/json",
          .body = fmt::format(R"({{"token":"{}"}})", Token(question.scopes, is_known))};
}

std::string TokenServer::Token(const std::vector<std::string>& scopes, bool may_push) const {
  std::string access;
  for (const std::string& scope : scopes) {
    access += (access.empty() ? "" : ",") + AccessOf(scope, may_push);
  }
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const std::string claims =
      fmt::format(R"({{"iss":"{}","sub":"warm","aud":"{}","exp":{},"nbf":{},"iat":{},"jti":"{}",)"
                  R"("access":[{}]}})",
                  kIssuer, kService, (now + lifetime_).count(), (now - 2 * kLeeway).count(),
                  now.count(), asked_.size(), access);
  const std::string head =
      fmt::format(R"({{"typ":"JWT","alg":"RS256","x5c":["{}"]}})", certificate_);
  const std::string text = fmt::format("{}.{}", Base64Url(head), Base64Url(claims));
  return fmt::format("{}.{}", text, Base64Url(Sign(text)));
}

std::string TokenServer::Sign(const std::string& text) const {
  folder_.Write("text", text);
  Openssl(
      fmt::format("dgst -sha256 -sign {0}/signer.key -out {0}/signature {0}/text", folder_.path()));
  return BytesOf(folder_ / "signature");
}

}  // namespace cachewarm::bundle
