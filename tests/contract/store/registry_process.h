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
  std::string client_ca_file;  // demands a client certificate of it; empty: of nobody
};

struct RegistrySettings {
  // Only user "warm" with password "secret" may do anything.
  bool with_password = false;
  RegistryTls tls;
  // Only who brings a token may do anything: where it is to be had, and the PEM file of who signs
  // it. As TokenServer makes them.
  std::string token_realm;
  std::string token_certificate_file;
  // Where readers of blobs are sent to; empty: nowhere.
  std::string redirect_url;
  // Empty: in a directory of its own.
  std::string content_directory;
};

// A real registry (docker-registry 2.8, the program that CACHEWARM_REGISTRY_BIN names) on a free
// loopback port. Killed with the object.
class RegistryProcess {
 public:
  // Empty: this machine has none, and who needs it skips.
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
  // Below it, docker/registry/v2 is its content.
  const std::string& content_directory() const { return content_directory_; }
  // Content and port stay.
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
