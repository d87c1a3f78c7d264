// toml++ with the same settings for the entire program, because different settings would violate
// the one-definition rule. A file that includes this header is compiled with the patched copy of
// toml++ (cmake/BulkheadToml.cmake) and must catch UnexpectedToml. Internal to core/.
#pragma once

namespace bulkhead::profiles {

struct UnexpectedToml {};
[[noreturn]] inline void unexpected_toml() {
  throw UnexpectedToml();
}

}  // namespace bulkhead::profiles

// toml++ asserts its assumptions about the text (with NDEBUG, the compiler relies on them). Text
// that violates them must not terminate the program, so a failed assertion throws an exception that
// ends parsing. The parser owns everything that it builds, so nothing leaks.
#undef NDEBUG
#define TOML_ASSERT(expression) \
  (static_cast<bool>(expression) ? void() : ::bulkhead::profiles::unexpected_toml())
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// Values are nested at most 32 levels deep, and keys have at most 101 names
// (cmake/BulkheadToml.cmake). These limits bound the recursion in the parser and its destructors.
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>
