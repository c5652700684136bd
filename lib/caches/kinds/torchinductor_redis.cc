// SPDX-License-Identifier: Apache-2.0
// The Redis remote caches of torch (torch/_inductor/remote_cache.py, 2.6 to 2.15) for FX graphs,
// AOTAutograd entries and autotune results. The variables turn them on. The address is the socket
// of the agent's endpoint (agent/remote), which keeps each value in a file, or the Redis that the
// container names itself. torch reads TORCHINDUCTOR_REDIS_HOST and _PORT only if the URL is unset.
//
// TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE stays off, because with it torch 2.15 fails to
// compile on a CPU.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind TorchInductorRedisKind() {
  return {
      .name = "torchinductor-redis",
      .path = "redis",
      .env = {{"TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE", "1"},
              {"TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE", "1"},
              {"TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE", "1"},
              {"TORCHINDUCTOR_REDIS_URL", "unix://@/endpoint.sock", "TORCHINDUCTOR_REDIS_HOST"}},
      .nested = {},
      // Entries hold C++ source for the CPU on which they were compiled, like those of
      // torchinductor, so a bundle with them is bound to its CPU class.
      .files = {{.glob = "*.value", .role = Role::kIndex, .native = true}},
      .opt_in =
          "The remote caches change the keys of torch's AOTAutograd cache and need the "
          "Python package redis in the image.",
      .facts = {.engine = "torch.compile with the package redis",
                .proof = "torch 2.15 with the Python package redis 8.1 ran on a CPU against "
                         "redis-server 7.0 and "
                         "against the agent, with the same hits and equal values.",
                .absolute_paths = "None in keys and names. Values hold source paths of the model.",
                .hit = "One *.value file per FX graph, AOTAutograd entry and autotune result.",
                .miss = "The same file, renamed into place by the agent."}};
}

}  // namespace cachewarm::caches
