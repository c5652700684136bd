// SPDX-License-Identifier: Apache-2.0
// bench_limit pack TREE LEVEL              the limit of packing, as JSON
// bench_limit unpack BLOB TREE TARGET      of unpacking: BLOB is a layer of TREE, TARGET is empty
//
// pack: max(wall of reading, CPU of zstd and sha256 / cores).
// unpack: max((CPU of sha256 + zstd + creating) / cores, CPU of sha256, which is one stream).
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

#include "fmt/format.h"
#include "tests/bench/limit/limit.h"

namespace cachewarm::bench {
namespace {

std::string Pack(const std::string& root, int level) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const Tree tree = List(root);
  const double read = ReadTree(root, tree, cores);
  const double encode = CompressTree(root, tree, level);
  return fmt::format(R"({{"limit": {:.4f}, "read": {:.4f}, "encode_cpu": {:.4f}, "cores": {}}})",
                     std::max(read, encode / cores), read, encode, cores);
}

std::string Unpack(const std::string& blob, const std::string& root, const std::string& target) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const DecodeCost decode = DecodeBlob(blob);
  const double create = CreateTree(target, List(root));
  const double sync = SyncTree(target);
  const double all = (decode.sha256 + decode.zstd + create) / cores;
  return fmt::format(
      R"({{"limit": {:.4f}, "sha256_cpu": {:.4f}, "zstd_cpu": {:.4f}, "create_cpu": {:.4f}, )"
      R"("sync": {:.4f}, "cores": {}}})",
      std::max(all, decode.sha256), decode.sha256, decode.zstd, create, sync, cores);
}

int Main(const std::vector<std::string>& words) {
  if (words.size() == 3 && words[0] == "pack") {
    fmt::print("{}\n", Pack(words[1], std::atoi(words[2].c_str())));
  } else if (words.size() == 4 && words[0] == "unpack") {
    fmt::print("{}\n", Unpack(words[1], words[2], words[3]));
  } else {
    fmt::print(stderr, "usage: bench_limit pack TREE LEVEL | unpack BLOB TREE TARGET\n");
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
