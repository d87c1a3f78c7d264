// Defines the table of CEL functions and operators.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "context.hpp"
#include "value.hpp"

namespace bulkhead::cel {

using Function = Value (*)(Context &context, const Value *arguments);

struct Overload {
  static constexpr std::size_t kMaxParameters = 2;  // including the receiver

  std::string_view name;  // operators are named "_+_", "-_" and so on
  bool member;
  std::uint8_t count;
  std::array<Kind, kMaxParameters> parameters;  // kDyn accepts any type
  Kind result;
  Function function;

  bool accepts(std::size_t index, Kind kind) const {
    return parameters[index] == Kind::kDyn || parameters[index] == kind;
  }
};

// Returns all overloads with this name, or an empty span if there are none.
std::span<const Overload> find_overloads(std::string_view name, bool member);

// Parts of the table. Each part is defined in the source file named after it.
std::span<const Overload> arithmetic_overloads();
std::span<const Overload> text_overloads();
std::span<const Overload> conversion_overloads();
std::span<const Overload> time_overloads();

}  // namespace bulkhead::cel
