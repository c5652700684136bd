// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace cachewarm {

// Every key of a log line besides ts, level and msg. camelCase; a duration ends in Seconds.
inline constexpr std::string_view kLogKeys[] = {
    // Objects. A namespaced object is written "namespace/name".
    "cacheWarmup",
    "job",
    "key",  // of the queue of a controller, as a rule "namespace/name"
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
    "reason",  // CamelCase, of lib/api/reasons.h
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
  consteval LogKey(const char* text) : text_(text) {  // NOLINT(*-explicit-*): written as a literal
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
