// Splits long text into parts. The tool arguments start_index and max_length select a part.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tool-kit/arguments.hpp"

namespace builtin_http {

struct Paging {
  std::uint64_t start_index = 0;    // offset in bytes
  std::uint64_t max_length = 5000;  // in bytes; a part has at least one character
};

// A part of a longer text: the bytes from `begin` up to but not including `end`. Both offsets are
// at character boundaries.
struct Part {
  std::size_t begin = 0, end = 0, total = 0;

  bool is_last() const { return end == total; }
  bool is_all() const { return begin == 0 && is_last(); }
  std::string shown() const;  // "Showing: a..b\n"
};

Paging read_paging(tool_kit::Arguments *arguments);

// Selects the part of `text` that the arguments in `paging` specify. Returns false and sets
// *problem to an error message if start_index is beyond the end.
bool part_of(std::string_view text, const Paging &paging, Part *out, std::string *problem);

// Returns the inputSchema properties for start_index and max_length. `what` names the text in their
// descriptions.
std::string paging_schema(std::string_view what);

}  // namespace builtin_http
