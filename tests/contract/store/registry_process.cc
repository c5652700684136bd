// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/store/registry_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/contract/store/token_server.h"
#include "tests/fakes/free_port.h"

namespace cachewarm::bundle {
namespace {

constexpr std::chrono::seconds kStartTimeout{20};
constexpr std::chrono::milliseconds kBetweenTries{20};

constexpr in_addr_t kAnother = INADDR_LOOPBACK + 1;  // 127.0.0.2

sockaddr_in Loopback(int port, in_addr_t host = INADDR_LOOPBACK) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(host);
  return address;
}

}  // namespace

std::string RegistryProcess::Program() {
  const char* program = std::getenv("CACHEWARM_REGISTRY_BIN");
  return program == nullptr ? "" : program;
}

RegistryProcess::RegistryProcess(const RegistrySettings& settings)
    : content_directory_(settings.content_directory.empty() ? directory_ / "content"
                                                            : settings.content_directory),
      config_file_(directory_ / "config.yml"),
      auth_file_(directory_ / "config.json"),
      port_(fakes::FreePort()) {
  WriteConfig(settings);
  WriteAuthFile();
  Start();
}

RegistryProcess::~RegistryProcess() {
  Kill();
}

std::string RegistryProcess::address() const {
  return fmt::format("127.0.0.1:{}", port_);
}

void RegistryProcess::WriteConfig(const RegistrySettings& settings) const {
  const RegistryTls& tls = settings.tls;
  std::ofstream config(config_file_);
  config << fmt::format(
      "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n"
      "storage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: {}}}}}\n"
      "http:\n  addr: 127.0.0.1:{}\n",
      content_directory_, settings.allows_deletion, port_);
  if (!tls.certificate_file.empty()) {
    config << fmt::format(
        "  tls: {{certificate: {}, key: {}{}}}\n", tls.certificate_file, tls.key_file,
        tls.client_ca_file.empty() ? std::string()
                                   : fmt::format(", clientcas: [{}]", tls.client_ca_file));
  }
  if (!settings.redirect_url.empty()) {
    config << fmt::format(
        "middleware: {{storage: [{{name: redirect, options: {{baseurl: {}}}}}]}}\n",
        settings.redirect_url);
  }
  if (settings.with_password) {
    config << fmt::format("auth: {{htpasswd: {{realm: test, path: {}/htpasswd}}}}\n",
                          directory_.path());
    directory_.Write("htpasswd",
                     "warm:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n");
  }
  if (!settings.token_realm.empty()) {
    config << fmt::format(
        "auth: {{token: {{realm: {}, service: {}, issuer: {}, rootcertbundle: {}}}}}\n",
        settings.token_realm, TokenServer::kService, TokenServer::kIssuer,
        settings.token_certificate_file);
  }
}

void RegistryProcess::WriteAuthFile() const {
  std::ofstream(auth_file_) << fmt::format(
      R"({{"auths":{{"{}":{{"username":"warm","password":"secret"}}}}}})", address());
}

void RegistryProcess::Start() {
  const std::string program = Program();
  process_ = ::fork();
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int log = ::open((directory_ / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::execl(program.c_str(), program.c_str(), "serve", config_file_.c_str(), nullptr);
    ::_exit(127);
  }
  const auto deadline = std::chrono::steady_clock::now() + kStartTimeout;
  while (!Answers()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << program << " does not answer";
    ASSERT_EQ(::waitpid(process_, nullptr, WNOHANG), 0) << program << " ended at once";
    std::this_thread::sleep_for(kBetweenTries);
  }
}

void RegistryProcess::Kill() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
}

bool RegistryProcess::Answers() const {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own = Loopback(0, kAnother);
  sockaddr_in address = Loopback(port_);
  // Bind another address: from 127.0.0.1 a free port may connect to itself, and the registry could
  // not listen on it.
  const bool connected =
      ::bind(socket, reinterpret_cast<sockaddr*>(&own), sizeof(own)) == 0 &&
      ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  ::close(socket);
  return connected;
}

}  // namespace cachewarm::bundle
