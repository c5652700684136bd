// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace cachewarm::gpu {

// A library that may or may not be on this machine. Closed with the object.
class SharedLibrary {
 public:
  // Not open when dlopen(3) does not find it; error() says why.
  explicit SharedLibrary(const std::string& name);
  SharedLibrary(SharedLibrary&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), error_(std::move(other.error_)) {}
  SharedLibrary& operator=(SharedLibrary&&) = delete;
  ~SharedLibrary();

  bool open() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }

  // Sets `function` to the symbol; false and nullptr when the library does not have it.
  template <typename Function>
  bool Find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(Symbol(symbol));
    return function != nullptr;
  }

 private:
  void* Symbol(const char* symbol) const;

  void* handle_ = nullptr;
  std::string error_;
};

}  // namespace cachewarm::gpu
