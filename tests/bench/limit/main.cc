// SPDX-License-Identifier: Apache-2.0
// bench_limit pack TREE LEVEL TARGET       the limit of packing, as JSON; TARGET is an empty folder
// bench_limit unpack BLOB TREE TARGET      of unpacking: BLOB is a layer of TREE, TARGET is empty
//
// The limit is the time of the work on all cores at once, and of the sync that ends it.
#include <cstdlib>
#include <exception>
#include <string>

#include "fmt/format.h"
#include "tests/bench/limit/limit.h"

namespace cachewarm::bench {
namespace {

std::string ToJson(const Cost& cost) {
  return fmt::format(R"({{"limit": {:.4f}, "work": {:.4f}, "sync": {:.4f}, "cores": {}}})",
                     cost.work + cost.sync, cost.work, cost.sync, Cores());
}

int Main(const std::vector<std::string>& words) {
  if (words.size() == 4 && words[0] == "pack") {
    const std::filesystem::path target = words[3];
    fmt::print("{}\n", ToJson(PackTree(words[1], List(words[1]), std::atoi(words[2].c_str()),
                                       target / "layer")));
  } else if (words.size() == 4 && words[0] == "unpack") {
    fmt::print("{}\n", ToJson(UnpackTree(words[1], List(words[2]), words[3])));
  } else {
    fmt::print(stderr, "usage: bench_limit pack TREE LEVEL TARGET | unpack BLOB TREE TARGET\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace cachewarm::bench

int main(int count, char** words) {
  try {
    return cachewarm::bench::Main({words + 1, words + count});
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_limit: {}\n", error.what());
    return 1;
  }
}
