// The functions and the arithmetic of CEL: one table of overloads, by name.
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
  static constexpr std::size_t kMaxParameters = 2;  // the receiver counts

  std::string_view name;  // an operator: "_+_", "-_"
  bool member;
  std::uint8_t count;
  std::array<Kind, kMaxParameters> parameters;  // kDyn: any
  Kind result;
  Function function;

  bool accepts(std::size_t index, Kind kind) const {
    return parameters[index] == Kind::kDyn || parameters[index] == kind;
  }
};

// All overloads of a name, side by side; empty for an unknown one.
std::span<const Overload> find_overloads(std::string_view name, bool member);

// The parts of the table, each in a file of its own.
std::span<const Overload> arithmetic_overloads();
std::span<const Overload> text_overloads();
std::span<const Overload> conversion_overloads();
std::span<const Overload> time_overloads();

}  // namespace bulkhead::cel
