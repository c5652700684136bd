// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

// Fuzz targets for every parser of untrusted input. A target takes any bytes and must return
// without a crash, a sanitizer report or an exceeded limit. It writes accepted input and parses it
// again: the result must be equal. A violated invariant aborts the process.
namespace cachewarm::fuzz {

struct Target {
  std::string_view name;  // of its folder in corpus/
  void (*run)(std::string_view bytes);
};

const std::vector<Target>& AllTargets();

// Input from published bundles and registries (bundle_targets.cc).
void Manifest(std::string_view bytes);
void Config(std::string_view bytes);
void LayoutIndex(std::string_view bytes);
void TarMembers(std::string_view bytes);
void RegistryAnswer(std::string_view bytes);
void Referrers(std::string_view bytes);
void Signature(std::string_view bytes);
void Location(std::string_view bytes);

// Chains of several parsers (store_targets.cc).
void UnpackedMembers(std::string_view bytes);
void EntryLines(std::string_view bytes);
void FrameIndex(std::string_view bytes);
void RegistryError(std::string_view bytes);
void AuthFile(std::string_view bytes);

// Input from the API server (object_targets.cc).
void CacheWarmup(std::string_view bytes);
void NodeCache(std::string_view bytes);
void Pod(std::string_view bytes);
void WatchStream(std::string_view bytes);

// Input from clients of the webhook (webhook_targets.cc).
void AdmissionReview(std::string_view bytes);

// Input from the machine on which "cachewarm run" starts a command (cli_targets.cc).
void PythonFiles(std::string_view bytes);
void DirectoryMarker(std::string_view bytes);
void StoredSnapshot(std::string_view bytes);
void CommandOutput(std::string_view bytes);

// Input from the manifests that "cachewarm lint" reads and the objects that "cachewarm report"
// shows (cli_targets.cc).
void LintManifest(std::string_view bytes);
void ReportText(std::string_view bytes);

// Input from the kubeconfig and the credential plugins of a user (kubeconfig_targets.cc).
void Kubeconfig(std::string_view bytes);
void ExecCredential(std::string_view bytes);

// Input from the users of torch's portable cache (megacache_targets.cc).
void Megacache(std::string_view bytes);

// Input from a node, its administrator and its pods (node_targets.cc).
void NodeFacts(std::string_view bytes);
void CpuInfo(std::string_view bytes);
void Yaml(std::string_view bytes);
void CachedFile(std::string_view bytes);
void RedisRequests(std::string_view bytes);

// Input from the containers of started pods (log_targets.cc).
void EngineLog(std::string_view bytes);

// Input from the cache directories that pods write (scan_targets.cc).
void ScannedEntry(std::string_view bytes);
void GpuCode(std::string_view bytes);
void OwnPaths(std::string_view bytes);

// Input from the pods and workloads of tenants (operator_targets.cc).
void StartFactors(std::string_view bytes);
void Workload(std::string_view bytes);

// Input from the clients of the Redis endpoint, and from a damaged disk (agent_targets.cc).
void RedisSession(std::string_view bytes);
void JournalRecord(std::string_view bytes);

// Lines that users, registries and the API server write (text_targets.cc).
void TimeOrQuantity(std::string_view bytes);
void Reference(std::string_view bytes);
void ServerAnswer(std::string_view bytes);

// Aborts with the violated invariant unless `holds`.
void Require(bool holds, std::string_view invariant);

}  // namespace cachewarm::fuzz
