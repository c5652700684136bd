// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "tests/fakes/temp_dir.h"

namespace cachewarm::bundle {

struct RegistryTls {
  std::string certificate_file;  // PEM
  std::string key_file;
  std::string client_ca_file;  // requires client certificates of this authority; empty: none
};

struct RegistrySettings {
  bool allows_deletion = true;
  // Requires user "warm" with password "secret".
  bool with_password = false;
  RegistryTls tls;
  // Requires a token: URL of the token server and PEM file of its certificate, as of TokenServer.
  std::string token_realm;
  std::string token_certificate_file;
  // Host to which readers of blobs are redirected; empty: none.
  std::string redirect_url;
  // Empty: a temporary directory.
  std::string content_directory;
};

// Runs a real registry (docker-registry 2.8, the program of CACHEWARM_REGISTRY_BIN) on a free
// loopback port. The destructor kills it.
class RegistryProcess {
 public:
  // Returns the program; empty if this machine has none, and tests must be skipped.
  static std::string Program();

  explicit RegistryProcess(const RegistrySettings& settings = {});
  RegistryProcess(const RegistryProcess&) = delete;
  RegistryProcess& operator=(const RegistryProcess&) = delete;
  ~RegistryProcess();

  // "127.0.0.1:41234"
  std::string address() const;
  uint16_t port() const { return static_cast<uint16_t>(port_); }
  // A docker config.json with the password.
  const std::string& auth_file() const { return auth_file_; }
  // Directory of the content, in docker/registry/v2.
  const std::string& content_directory() const { return content_directory_; }
  // Restarts it with the same content and port.
  void Kill();
  void Start();

 private:
  void WriteConfig(const RegistrySettings& settings) const;
  void WriteAuthFile() const;
  bool Answers() const;

  TempDir directory_;
  std::string content_directory_;
  std::string config_file_;
  std::string auth_file_;
  int port_ = 0;
  pid_t process_ = -1;
};

}  // namespace cachewarm::bundle
