// SPDX-License-Identifier: Apache-2.0
// Options that jemalloc reads at program start (jemalloc(3), TUNING), for a daemon that mostly
// waits: one arena for all threads, no per-thread caches, pages returned as soon as they are free,
// no transparent huge pages.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "narenas:1,tcache:false,dirty_decay_ms:0,muzzy_decay_ms:0,thp:never";
}
