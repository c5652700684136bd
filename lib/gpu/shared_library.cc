// SPDX-License-Identifier: Apache-2.0
#include "lib/gpu/shared_library.h"

#include <dlfcn.h>

namespace cachewarm::gpu {

SharedLibrary::SharedLibrary(const std::string& name)
    : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) {
    const char* reason = dlerror();
    error_ = reason == nullptr ? name : reason;
  }
}

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) {
    dlclose(handle_);
  }
}

void* SharedLibrary::Symbol(const char* symbol) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, symbol);
}

}  // namespace cachewarm::gpu
