// SPDX-License-Identifier: Apache-2.0
#include "lib/megacache/kernels.h"

#include <string>

#include "gtest/gtest.h"

namespace cachewarm::megacache {
namespace {

std::string Kernel(const std::string& name) {
  return "\n#include <torch/csrc/inductor/cpp_prefix.h>\nextern \"C\" void kernel() {} // " + name +
         "\n";
}
std::string Call(const std::string& source) {
  return "k = async_compile.cpp_pybinding(['float*'], r'''" + source + "''')\n";
}

TEST(KernelSources, AreTheLiteralsOfAllEntriesEachOnce) {
  const std::string first = "\x80\x04X...." + Call(Kernel("a")) + Call(Kernel("b")) + "\x94.";
  const std::string second = Call(Kernel("b")) + Call(Kernel("c"));
  const std::vector<Entry> entries = {{"inductor", "f1", first}, {"precompile", "f2", second}};
  const KernelSources sources(entries);
  EXPECT_EQ(sources.size(), 3U);
  const auto a = sources.Find(Kernel("a") + "// Python bindings to call kernel():");
  const auto b = sources.Find(Kernel("b"));
  ASSERT_TRUE(a.has_value() && b.has_value());
  EXPECT_NE(*a, *b);
  EXPECT_LT(*b, 3U);
  EXPECT_EQ(sources.Find(Kernel("d")), std::nullopt);
  EXPECT_EQ(sources.Find(Kernel("a").substr(1)), std::nullopt) << "not at the beginning";
  EXPECT_EQ(sources.Find(""), std::nullopt);
}

TEST(KernelSources, FindsAPrefixBehindSourcesThatContinueIt) {
  const std::string base = Kernel("a");
  const std::string content = Call(base) + Call(base + "1") + Call(base + "12") + Call(base + "x");
  const std::vector<Entry> entries = {{"inductor", "f1", content}};
  const KernelSources sources(entries);
  ASSERT_EQ(sources.size(), 4U);
  EXPECT_EQ(sources.Find(base + "2"), sources.Find(base)) << "between +12 and +x";
  EXPECT_EQ(sources.Find(base + "123"), sources.Find(base + "12"));
  EXPECT_EQ(sources.Find(base + "13"), sources.Find(base + "1"));
  EXPECT_NE(sources.Find(base + "1"), sources.Find(base));
}

TEST(KernelSources, IgnoreOtherLiteralsAndUnfinishedOnes) {
  const std::string content = "async_compile.triton('t', '''" + Kernel("t") + "''') r'''short''' " +
                              Call(Kernel("a")) + "r'''" + Kernel("cut");
  const std::vector<Entry> entries = {{"inductor", "f1", content}, {"pgo", "j", ""}};
  const KernelSources sources(entries);
  EXPECT_EQ(sources.size(), 1U);
  EXPECT_TRUE(sources.Find(Kernel("a")).has_value());
  EXPECT_EQ(KernelSources({}).Find("x"), std::nullopt);
}

TEST(PrecompilesHeaders, IsReadFromTheLinesOfTheKey) {
  const std::string prefix = "]\x8c\x60 inductor_config[cpp_cache_precompile_headers]: ";
  const std::string on = prefix + "True\x94";
  const std::string off = prefix + "False\x94";
  const std::string cut = prefix;
  const std::string other = "inductor_config[aot_inductor.precompile_headers]: True";
  const auto of = [](std::vector<Entry> entries) { return PrecompilesHeaders(entries); };
  EXPECT_EQ(of({{"pgo", "j", "x"}, {"inductor", "f1", on}}), true);
  EXPECT_EQ(of({{"inductor", "f1", off}}), false);
  EXPECT_EQ(of({{"inductor", "f1", cut}, {"inductor", "f2", off}}), false);
  EXPECT_EQ(of({{"inductor", "f1", other}}), std::nullopt);
  EXPECT_EQ(of({}), std::nullopt);
}

}  // namespace
}  // namespace cachewarm::megacache
