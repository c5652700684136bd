// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace cachewarm {

// All keys of log lines besides ts, level and msg. Keys are camelCase; keys of durations end in
// Seconds.
inline constexpr std::string_view kLogKeys[] = {
    // Objects. A namespaced object is written "namespace/name".
    "cacheWarmup",
    "job",
    "key",  // key of a controller's work queue, usually "namespace/name"
    "kind",
    "name",
    "node",
    "pod",
    "podUID",
    "secret",
    "warmupUID",
    "webhookConfiguration",
    // Kubernetes API
    "group",
    "resource",
    "verb",
    // Outcomes
    "code",
    "err",  // the message of an error
    "failures",
    "note",
    "ok",
    "reason",  // CamelCase, from lib/api/reasons.h
    "rejected",
    "removed",
    "result",
    // Programs
    "controller",
    "identity",
    "listenAddress",
    "mode",
    "port",
    "root",
    "step",
    "store",
    "version",
    // Nodes
    "cpuClass",
    "devices",
    "driverVersion",
    "gpuType",
    // Trees and bundles
    "bundleKey",
    "bundles",
    "bytes",
    "digest",
    "files",
    "filesGone",
    "filesModified",
    "filesRead",
    "generation",
    "leftOut",
    "movedBytes",
    "nativeBuilt",
    "opened",
    "path",
    "reusedBytes",
    "runAs",
    "trees",
    "written",
    // Gates
    "heldPods",
    "inject",
    // Durations
    "compileSeconds",
    "durationSeconds",
    "heldSeconds",
    "readySeconds",
};

// A key of a log line. It can be made only from a literal that is in kLogKeys: any other literal
// does not compile.
class LogKey {
 public:
  consteval LogKey(const char* text) : text_(text) {  // NOLINT(*-explicit-*): callers pass literals
    if (!IsListed(text_)) {
      throw "not in kLogKeys (lib/base/log_keys.h)";
    }
  }
  constexpr std::string_view text() const { return text_; }

 private:
  static constexpr bool IsListed(std::string_view text) {
    for (const std::string_view each : kLogKeys) {
      if (each == text) {
        return true;
      }
    }
    return false;
  }

  std::string_view text_;
};

}  // namespace cachewarm
