// toml++ with one set of settings for the entire program: two sets would violate the one-definition
// rule. A file that includes this header is compiled with the patched copy of toml++
// (cmake/BulkheadToml.cmake) and catches UnexpectedToml. Internal to core/.
#pragma once

namespace bulkhead::profiles {

struct UnexpectedToml {};
[[noreturn]] inline void unexpected_toml() {
  throw UnexpectedToml();
}

}  // namespace bulkhead::profiles

// toml++ asserts its assumptions about the text (with NDEBUG, the compiler relies on them). Text
// that violates them must not terminate the program, so a failed assertion throws an exception that
// ends the parse. The parser owns everything that it builds, so nothing is leaked.
#undef NDEBUG
#define TOML_ASSERT(expression) \
  (static_cast<bool>(expression) ? void() : ::bulkhead::profiles::unexpected_toml())
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// At most 32 nested values and 101 names per key (cmake/BulkheadToml.cmake) limit the recursion of
// the parser and of its destructors.
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>
