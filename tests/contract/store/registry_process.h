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

// A real registry (docker-registry 2.8, the program that CACHEWARM_REGISTRY_BIN names) on a free
// loopback port with its data in a directory of its own. Killed with the object.
class RegistryProcess {
 public:
  // Empty: this machine has none, and who needs it skips.
  static std::string Program();

  // With `with_password`, only user "warm" with password "secret" may do anything.
  explicit RegistryProcess(bool with_password = false);
  explicit RegistryProcess(const RegistryTls& tls);
  RegistryProcess(const RegistryProcess&) = delete;
  RegistryProcess& operator=(const RegistryProcess&) = delete;
  ~RegistryProcess();

  // "127.0.0.1:41234"
  std::string address() const;
  uint16_t port() const { return static_cast<uint16_t>(port_); }
  // A docker config.json with the password.
  const std::string& auth_file() const { return auth_file_; }
  const std::string& directory() const { return directory_.path(); }
  // Data and port stay.
  void Kill();
  void Start();

 private:
  void WriteConfig(bool with_password, const std::string& tls);
  bool Answers() const;

  TempDir directory_;
  std::string config_file_;
  std::string auth_file_;
  int port_ = 0;
  pid_t process_ = -1;
};

}  // namespace cachewarm::bundle
