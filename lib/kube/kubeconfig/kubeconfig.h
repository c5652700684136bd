// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/kube/kubeconfig/exec_plugin.h"

namespace cachewarm::kube {

// The user to act as, instead of the user that the credentials belong to.
struct Impersonation {
  std::string user;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;

  friend bool operator==(const Impersonation&, const Impersonation&) = default;
};

// The entries of kubeconfig files. Paths are absolute. *_pem is the decoded content of a field such
// as certificate-authority-data.
struct KubeconfigContext {
  std::string file;  // that contains this entry
  std::string cluster;
  std::string user;
  std::string ns;
};
struct KubeconfigCluster {
  std::string file;
  std::string server;
  std::string ca_file;
  std::string ca_pem;
  std::string tls_server_name;
  std::string proxy_url;
  bool skip_verification = false;  // insecure-skip-tls-verify
  bool disable_compression = false;
  std::string plugin_config;  // JSON for credential plugins, from the extensions; empty: none
};
struct KubeconfigUser {
  std::string file;
  std::string token;
  std::string token_file;
  std::string certificate_file;
  std::string certificate_pem;
  std::string key_file;
  std::string key_pem;
  Impersonation impersonation;
  std::string auth_provider;         // name of a legacy auth provider; empty: none
  bool has_password = false;         // basic authentication
  std::shared_ptr<ExecPlugin> exec;  // null: none
  std::string exec_input;            // interactiveMode
  bool exec_wants_cluster = false;   // provideClusterInfo
};

// The merged content of kubeconfig files.
struct Kubeconfig {
  std::string current_context;
  std::map<std::string, KubeconfigContext> contexts;
  std::map<std::string, KubeconfigCluster> clusters;
  std::map<std::string, KubeconfigUser> users;
  std::vector<std::string> files;    // that were read, in the order of their precedence
  std::vector<std::string> missing;  // that were skipped
};

// Adds the content of a file to `to`, by the rules of kubectl: the first definition of a name and
// the first current-context win. `path` is the path of the file: relative paths in the file start
// at its folder. INVALID_ARGUMENT, naming file and field, if the text is malformed.
absl::Status MergeKubeconfig(std::string_view text, const std::string& path, Kubeconfig& to);

// Names the files that kubectl would read.
struct KubeconfigPaths {
  std::string file;      // --kubeconfig: only this file, which must exist
  std::string variable;  // $KUBECONFIG: paths separated by ':'; skips files that do not exist
  // $HOME, whose .kube/config is read if the variable is empty, the file exists and is readable.
  std::string home;
};

// Reads and merges the files. NOT_FOUND if `paths.file` does not exist; the errors of
// MergeKubeconfig() and of fs::ReadNamedFile.
absl::StatusOr<Kubeconfig> LoadKubeconfig(const KubeconfigPaths& paths);

}  // namespace cachewarm::kube
