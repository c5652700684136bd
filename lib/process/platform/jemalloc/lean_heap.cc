// SPDX-License-Identifier: Apache-2.0
// What jemalloc reads when the program starts (jemalloc(3), TUNING). A daemon that waits most of
// the time has one arena for all threads, no caches of threads, and gives pages back as soon as
// they are free; small ones, where the kernel would hand out huge ones unasked.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "narenas:1,tcache:false,dirty_decay_ms:0,muzzy_decay_ms:0,thp:never";
}
