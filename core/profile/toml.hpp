// Includes toml++ with the same settings in all files, because different settings would violate the
// one-definition rule. A file that includes this header must be compiled with the patched copy of
// toml++ (cmake/BulkheadToml.cmake) and must catch UnexpectedToml. Internal to core/.
#pragma once

namespace bulkhead::profiles {

struct UnexpectedToml {};
[[noreturn]] inline void unexpected_toml() {
  throw UnexpectedToml();
}

}  // namespace bulkhead::profiles

// toml++ uses assertions to check assumptions about the text. With NDEBUG, the compiler would rely
// on these assumptions. Text that violates one must not terminate the program, so a failed
// assertion throws an exception, which ends parsing. The parser owns everything that it has built,
// so nothing leaks.
#undef NDEBUG
#define TOML_ASSERT(expression) \
  (static_cast<bool>(expression) ? void() : ::bulkhead::profiles::unexpected_toml())
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// Values can be nested up to 32 levels deep, and a key can have up to 101 names
// (cmake/BulkheadToml.cmake). These limits bound the recursion in the parser and its destructors.
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>
