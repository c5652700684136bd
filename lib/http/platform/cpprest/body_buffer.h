// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cpprest/astreambuf.h>

#include <memory>

#include "lib/http/platform/cpprest/exchange.h"

namespace cachewarm::http {

// The library's side of an Exchange: a stream buffer to which the library puts bytes (response
// body) or from which it gets bytes (request body). Supports no other operation. The task of an
// operation completes only when the caller's thread has space or bytes, so that the library does
// not use the socket faster than the caller's thread can follow.
class BodyBuffer final : public concurrency::streams::details::streambuf_state_manager<uint8_t> {
 public:
  BodyBuffer(std::shared_ptr<Exchange> exchange, std::ios_base::openmode mode)
      : streambuf_state_manager(mode), exchange_(std::move(exchange)) {}

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(size_t, std::ios_base::openmode) override {}
  size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return NoPosition(); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return NoPosition(); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return NoPosition();
  }
  bool acquire(uint8_t*&, size_t&) override { return false; }
  void release(uint8_t*, size_t) override {}

 protected:
  pplx::task<size_t> _putn(const uint8_t* bytes, size_t count) override {
    return exchange_->Put(bytes, count);
  }
  pplx::task<size_t> _putn(const uint8_t* bytes, size_t count, bool) override {
    return exchange_->Put(bytes, count);
  }
  pplx::task<size_t> _getn(uint8_t* out, size_t count) override {
    return exchange_->Get(out, count);
  }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }

  // The library's HTTP client never reads or writes single bytes.
  pplx::task<int_type> _putc(uint8_t) override { return Never(); }
  pplx::task<int_type> _bumpc() override { return Never(); }
  pplx::task<int_type> _getc() override { return Never(); }
  pplx::task<int_type> _nextc() override { return Never(); }
  pplx::task<int_type> _ungetc() override { return Never(); }
  int_type _sbumpc() override { return traits::eof(); }
  int_type _sgetc() override { return traits::eof(); }
  size_t _scopy(uint8_t*, size_t) override { return 0; }
  uint8_t* _alloc(size_t) override { return nullptr; }
  void _commit(size_t) override {}

 private:
  static pos_type NoPosition() { return static_cast<pos_type>(traits::eof()); }
  static pplx::task<int_type> Never() { return pplx::task_from_result<int_type>(traits::eof()); }

  std::shared_ptr<Exchange> exchange_;
};

}  // namespace cachewarm::http
