// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lib/megacache/artifact.h"
#include "lib/megacache/layout.h"
#include "tests/fakes/cache_files.h"
#include "tests/unit/cli/program_fixture.h"

namespace cachewarm::cli {

inline constexpr char kGraphKey[] = "fabcd1";
inline constexpr char kAotKey[] = "aabcd1";

// The source of a kernel, and the text of the source file that Inductor makes of it.
inline std::string Kernel(const std::string& name) {
  return "\n#include <torch/csrc/inductor/cpp_prefix.h>\nextern \"C\" void kernel() {} // " + name +
         "\n";
}
inline std::string SourceFile(const std::string& name) {
  return Kernel(name) + "// Python bindings to call kernel():\n";
}
// The generated Python code of a graph with these kernels.
inline std::string GraphCode(const std::vector<std::string>& kernels) {
  std::string code = "# AOT ID: ['0_inference']\nasync_compile = AsyncCompile()\n";
  for (const std::string& kernel : kernels) {
    code += "k = async_compile.cpp_pybinding(['float*'], r'''" + Kernel(kernel) + "''')\n";
  }
  return code;
}
// The entry of a graph, saved with or without precompiled headers.
inline std::string GraphEntry(const std::string& code, bool headers = false) {
  return "\x80\x04X...." + code + "\x94" +
         "[a] inductor_config[cpp_cache_precompile_headers]: " + (headers ? "True" : "False") +
         "\x94.";
}

// Calls of "import" and "export" with an artifact of one graph with the kernels "one" and "two".
class MegacacheFixture : public ProgramFixture {
 protected:
  MegacacheFixture() {
    WriteArtifact({{"inductor", kGraphKey, graph_},
                   {"aot_autograd", kAotKey, "aot"},
                   {"autotune", "ab/00112233.best_config", "{\"num_warps\": 4}"},
                   {"pgo", "job:0:", "first"},
                   {"pgo", "job:0:", "second"},
                   {"precompile", "0a1b2c3d", "function"}});
    temp_.Write("torch/wr/cwrapper.py", GraphCode({"one", "two"}));
    for (const std::string name : {"one", "two", "other"}) {
      temp_.Write("torch/ob/c" + name + ".main.cpp", SourceFile(name));
      temp_.Write("torch/ob/c" + name + ".main.so", SharedObject(name));
    }
    temp_.Write("torch/is/cisa.cpp", "int main() {}");
    temp_.Write("torch/is/cisa.so", SharedObject("isa"));
    temp_.Write("torch/is/cisa.so.load_ok", "");
  }

  void WriteArtifact(const std::vector<megacache::Entry>& entries) {
    temp_.Write("artifact.bin", megacache::Write(entries));
  }
  // Calls "import" for the machine of facts.json, without the engines of this machine's Python.
  Outcome Import(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"import", temp_ / "artifact.bin", "--node-facts",
                                 temp_ / "facts.json", "--python", "/nonexistent"});
    return Run(flags);
  }
  // Calls "export" in the same way, into "exported.bin".
  Outcome Export(std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"export", "--node-facts", temp_ / "facts.json", "--python", "/nonexistent"});
    return Run(flags);
  }
  // "type key content" of each entry of an artifact.
  std::vector<std::string> EntriesOf(const std::string& file) const {
    const std::string bytes = Read(file);
    const auto entries = megacache::Parse(bytes, {});
    EXPECT_TRUE(entries.ok()) << file << entries.status();
    std::vector<std::string> words;
    for (const megacache::Entry& entry : entries.value_or(std::vector<megacache::Entry>())) {
      words.push_back(entry.type + " " + entry.key + " " + std::string(entry.content));
    }
    return words;
  }
  std::string GraphPath(const std::string& content) const {
    return "inductor/fxgraph/ab/fabcd1/" + megacache::ContentName(content);
  }

  const std::string graph_ = GraphEntry(GraphCode({"one", "two"}));
};

}  // namespace cachewarm::cli
