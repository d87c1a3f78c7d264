// Overloads of for_each_element(), for_each_item() and for_each_member() (scan.hpp) for lambdas and
// other callables. The callable returns void or bool, and returning false stops the iteration. It
// must not throw. These functions do not allocate.
#pragma once

#include <string_view>
#include <type_traits>

#include "mcp/scan.hpp"

namespace bulkhead::mcp {
namespace detail {

template <class F, class... Texts>
bool call_each(void *f, Texts... texts) {
  auto &function = *static_cast<std::remove_reference_t<F> *>(f);
  if constexpr (std::is_void_v<std::invoke_result_t<F &, Texts...>>) {
    function(texts...);
    return true;
  } else {
    return function(texts...);
  }
}

template <class F>
void *untyped(F &f) noexcept {
  return const_cast<std::remove_const_t<F> *>(&f);
}

}  // namespace detail

template <class F>
bool for_each_element(std::string_view batch, F &&f) noexcept {
  return for_each_element(batch, detail::untyped(f), detail::call_each<F, std::string_view>);
}

template <class F>
bool for_each_item(std::string_view array, F &&f) noexcept {
  return for_each_item(array, detail::untyped(f), detail::call_each<F, std::string_view>);
}

template <class F>
bool for_each_member(std::string_view object, F &&f) noexcept {
  return for_each_member(object, detail::untyped(f),
                         detail::call_each<F, std::string_view, std::string_view>);
}

}  // namespace bulkhead::mcp
