// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace cachewarm::gpu {

// A shared library that this machine may lack. It is closed when the object is destroyed.
class SharedLibrary {
 public:
  // Opens the library. If dlopen(3) does not find it, the object is empty and error() has the
  // cause.
  explicit SharedLibrary(const std::string& name);
  SharedLibrary(SharedLibrary&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), error_(std::move(other.error_)) {}
  SharedLibrary& operator=(SharedLibrary&&) = delete;
  ~SharedLibrary();

  bool open() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }

  // Sets `function` to the symbol; returns false and sets nullptr if the library lacks it.
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
