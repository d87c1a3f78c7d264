// Functions and classes for the basic types of the C ABI. Header only; C++20.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "../abi/host.h"

namespace bh {

inline std::string_view view(bh_str s) noexcept {
  return {s.p, static_cast<std::size_t>(s.n)};
}

inline bh_str str(std::string_view s) noexcept {
  return {s.data(), s.size()};
}

// If `error` is not null, fills *error. Returns `code`, so that a function can end with `return
// bh::fail(error, BH_E_IO, "...")`. If necessary, the text is truncated at a character boundary.
inline bh_status fail(bh_error *error, bh_status code, std::string_view text,
                      std::uint32_t retry_after_ms = 0) noexcept {
  if (error == nullptr || !BH_HAS(bh_error, error, text)) return code;
  std::size_t n = std::min(text.size(), sizeof error->text);
  while (n < text.size() && n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) --n;
  error->code = code;
  error->retry_after_ms = retry_after_ms;
  error->n = static_cast<std::uint32_t>(n);
  if (n > 0) std::memcpy(error->text, text.data(), n);
  return code;
}

inline bh_error make_error(bh_status code = BH_OK, std::string_view text = {},
                           std::uint32_t retry_after_ms = 0) noexcept {
  bh_error error;
  error.size = sizeof error;
  error.code = code;
  error.retry_after_ms = 0;
  error.n = 0;
  fail(&error, code, text, retry_after_ms);
  return error;
}

inline std::string_view text(const bh_error &error) noexcept {
  return {error.text, error.n};
}

// Moves a string into a bh_buf. The receiver must release it.
inline bh_buf buf(std::string &&s) {
  auto *owner = new std::string(std::move(s));
  return {owner->data(), owner->size(), owner,
          [](void *p) { delete static_cast<std::string *>(p); }};
}

// Owns a bh_buf and releases it on destruction.
class Buf {
 public:
  Buf() noexcept = default;
  explicit Buf(bh_buf b) noexcept : buf_(b) {}
  Buf(Buf &&other) noexcept : buf_(std::exchange(other.buf_, bh_buf{})) {}
  Buf &operator=(Buf &&other) noexcept {
    if (this != &other) {
      reset();
      buf_ = std::exchange(other.buf_, bh_buf{});
    }
    return *this;
  }
  Buf(const Buf &) = delete;
  Buf &operator=(const Buf &) = delete;
  ~Buf() { reset(); }

  std::string_view view() const noexcept { return {buf_.p, static_cast<std::size_t>(buf_.n)}; }

 private:
  void reset() noexcept {
    if (buf_.release != nullptr) buf_.release(buf_.owner);
    buf_ = {};
  }
  bh_buf buf_{};
};

// Runs f. Converts an exception to an error, because no exception may cross the ABI.
template <class F>
bh_status guarded(bh_error *error, F &&f) noexcept {
  try {
    return f();
  } catch (const std::exception &e) {
    return fail(error, BH_E_INTERNAL, e.what());
  } catch (...) {
    return fail(error, BH_E_INTERNAL, "unknown exception");
  }
}

// Runs f and returns its result. If f throws an exception, returns `otherwise`.
template <class T, class F>
T guarded_or(T otherwise, F &&f) noexcept {
  try {
    return f();
  } catch (...) {
    return otherwise;
  }
}

// Runs f, which has no result, and ignores exceptions.
template <class F>
void contained(F &&f) noexcept {
  try {
    f();
  } catch (...) {  // f has no status with which the exception could be reported
  }
}

}  // namespace bh
