#include "route/count_allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#ifndef __has_feature
#define __has_feature(x) 0  // not defined by older versions of GCC
#endif

namespace {

std::atomic<std::size_t> count = 0;

}  // namespace

std::size_t bulkhead::count_allocations() noexcept {
  return count;
}

#if !defined(__SANITIZE_THREAD__) && !__has_feature(thread_sanitizer)

void *operator new(std::size_t size) {
  ++count;
  if (void *p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
  ++count;
  return std::malloc(size);
}
void operator delete(void *p) noexcept {
  std::free(p);
}
void operator delete(void *p, std::size_t) noexcept {
  std::free(p);
}

#endif
