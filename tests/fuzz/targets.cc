// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/targets.h"

#include <cstdlib>
#include <iostream>

namespace cachewarm::fuzz {

const std::vector<Target>& AllTargets() {
  static const std::vector<Target> targets = {
      {"manifest", &Manifest},
      {"config", &Config},
      {"layout_index", &LayoutIndex},
      {"tar_members", &TarMembers},
      {"registry_answer", &RegistryAnswer},
      {"referrers", &Referrers},
      {"signature", &Signature},
      {"location", &Location},
      {"unpacked_members", &UnpackedMembers},
      {"entry_lines", &EntryLines},
      {"frame_index", &FrameIndex},
      {"registry_error", &RegistryError},
      {"auth_file", &AuthFile},
      {"cache_warmup", &CacheWarmup},
      {"node_cache", &NodeCache},
      {"pod", &Pod},
      {"watch_stream", &WatchStream},
      {"node_facts", &NodeFacts},
      {"cpu_info", &CpuInfo},
      {"yaml", &Yaml},
      {"cached_file", &CachedFile},
      {"redis_requests", &RedisRequests},
      {"admission_review", &AdmissionReview},
      {"python_files", &PythonFiles},
      {"directory_marker", &DirectoryMarker},
      {"stored_snapshot", &StoredSnapshot},
      {"megacache", &Megacache},
      {"kubeconfig", &Kubeconfig},
      {"exec_credential", &ExecCredential},
      {"engine_log", &EngineLog},
      {"scanned_entry", &ScannedEntry},
      {"gpu_code", &GpuCode},
      {"own_paths", &OwnPaths},
      {"start_factors", &StartFactors},
      {"workload", &Workload},
      {"lint_manifest", &LintManifest},
      {"report_text", &ReportText},
      {"command_output", &CommandOutput},
      {"redis_session", &RedisSession},
      {"journal_record", &JournalRecord},
      {"time_or_quantity", &TimeOrQuantity},
      {"reference", &Reference},
      {"server_answer", &ServerAnswer},
  };
  return targets;
}

void Require(bool holds, std::string_view invariant) {
  if (!holds) {
    std::cerr << "invariant violated: " << invariant << std::endl;
    std::abort();
  }
}

}  // namespace cachewarm::fuzz
