// toml++ with one set of settings for the whole program: two sets would violate the one-definition
// rule. A file that includes this is compiled with the corrected copy (cmake/BulkheadToml.cmake)
// and catches UnexpectedToml. Internal to core/.
#pragma once

namespace bulkhead::profiles {

struct UnexpectedToml {};
[[noreturn]] inline void unexpected_toml() {
  throw UnexpectedToml();
}

}  // namespace bulkhead::profiles

// toml++ asserts (with NDEBUG: assumes) what it believes of its text. A text that proves it wrong
// must not end the program: here it ends the parse. The parser owns what it builds, so that nothing
// is lost by an exception.
#undef NDEBUG
#define TOML_ASSERT(expression) \
  (static_cast<bool>(expression) ? void() : ::bulkhead::profiles::unexpected_toml())
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// 32 values inside each other, and at most 101 names per key (cmake/BulkheadToml.cmake), bound the
// recursion of the parser and of its destructors.
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>
