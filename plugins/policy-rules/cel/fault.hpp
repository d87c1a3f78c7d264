// Defines Fault, which describes an error in an expression and its position.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead::cel {

struct Fault {
  std::uint32_t line = 1;    // from 1
  std::uint32_t column = 1;  // from 1, in characters
  std::string text;          // error message with the permitted alternatives

  std::string to_string() const {
    return std::to_string(line) + ":" + std::to_string(column) + ": " + text;
  }
};

// Creates a fault for a byte offset in `source`. An offset beyond the end refers to the end.
Fault fault_at(std::string_view source, std::size_t offset, std::string text);

}  // namespace bulkhead::cel
