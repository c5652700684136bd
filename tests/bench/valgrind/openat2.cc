// SPDX-License-Identifier: Apache-2.0
// Preloaded under valgrind 3.19, which does not know openat2(2): answers it by openat(2), for
// counting instructions only. Nothing then keeps a path beneath its directory.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <cstdarg>

extern "C" long syscall(long number, ...) noexcept {  // NOLINT(cert-dcl50-cpp)
  va_list words;
  va_start(words, number);
  long argument[6];  // the kernel takes no more
  for (long& word : argument) {
    word = va_arg(words, long);
  }
  va_end(words);
  if (number == SYS_openat2) {
    const auto* const how = reinterpret_cast<const open_how*>(argument[2]);
    return ::openat(static_cast<int>(argument[0]), reinterpret_cast<const char*>(argument[1]),
                    static_cast<int>(how->flags), static_cast<mode_t>(how->mode));
  }
  using Syscall = long (*)(long, ...);
  static const auto next = reinterpret_cast<Syscall>(::dlsym(RTLD_NEXT, "syscall"));
  return next(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}
