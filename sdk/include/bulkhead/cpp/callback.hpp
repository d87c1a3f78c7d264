// Typed callbacks for ABI functions that take a function pointer and an argument. A callback
// consists of an object and either a member function or a stateless lambda:
//
//   host.defer(bh::callback<&Plugin::look>(this));
//   host.timer_start(ms, bh::callback(&job, [](Job &late) { late.timer = 0; late.finish(); }));
//
// The object must exist until the callback has run or has been cancelled. Callbacks allocate no
// memory and cost no more than a plain function pointer. Header only; C++20.
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

#include "basics.hpp"

namespace bh {

struct Callback {
  void (*fn)(void *arg);
  void *arg;
};

struct FdCallback {
  void (*fn)(void *arg, std::int32_t fd, std::uint32_t events);
  void *arg;
};

namespace detail {

template <class T>
void *untyped(T *object) noexcept {
  return const_cast<std::remove_cv_t<T> *>(object);
}

// Calls f. The ready events are passed to f if it has a parameter for them.
template <class F, class T>
void call_ready(F &&f, T &object, std::uint32_t events) {
  if constexpr (std::is_invocable_v<F, T &, std::uint32_t>) {
    std::invoke(f, object, events);
  } else {
    std::invoke(f, object);
  }
}

}  // namespace detail

template <auto member, class T>
Callback callback(T *object) noexcept {
  return {[](void *arg) { std::invoke(member, *static_cast<T *>(arg)); }, detail::untyped(object)};
}

template <class T, class F>
  requires(std::is_empty_v<F> && std::is_invocable_v<F, T &>)
Callback callback(T *object, F) noexcept {
  return {[](void *arg) { F{}(*static_cast<T *>(arg)); }, detail::untyped(object)};
}

// The member function may have a parameter for the ready events.
template <auto member, class T>
FdCallback fd_callback(T *object) noexcept {
  return {[](void *arg, std::int32_t, std::uint32_t events) {
            detail::call_ready(member, *static_cast<T *>(arg), events);
          },
          detail::untyped(object)};
}

template <class T, class F>
  requires(std::is_empty_v<F>)
FdCallback fd_callback(T *object, F) noexcept {
  return {[](void *arg, std::int32_t, std::uint32_t events) {
            detail::call_ready(F{}, *static_cast<T *>(arg), events);
          },
          detail::untyped(object)};
}

// Creates a callback for a member function that may throw. Exceptions are caught and ignored,
// because they must not cross the ABI.
template <auto member, class T>
Callback contained_callback(T *object) noexcept {
  return callback(object, [](T &it) { contained([&] { std::invoke(member, it); }); });
}
template <auto member, class T>
FdCallback contained_fd_callback(T *object) noexcept {
  return fd_callback(object, [](T &it, std::uint32_t events) {
    contained([&] { detail::call_ready(member, it, events); });
  });
}

// A function to run on a pool thread, and a function to run on the reactor thread afterwards.
struct BlockingWork {
  void (*work)(void *arg);
  void (*done)(void *arg);
  void *arg;
};

template <auto work, auto done, class T>
BlockingWork blocking_work(T *object) noexcept {
  const Callback first = callback<work>(object);
  return {first.fn, callback<done>(object).fn, first.arg};
}

template <class T, class Work, class Done>
BlockingWork blocking_work(T *object, Work work, Done done) noexcept {
  const Callback first = callback(object, work);
  return {first.fn, callback(object, done).fn, first.arg};
}

}  // namespace bh
