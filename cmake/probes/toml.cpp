// The same settings as in core/profile/toml.hpp.
#undef NDEBUG
#define TOML_ASSERT(expression) (static_cast<bool>(expression) ? void() : __builtin_trap())
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

#include <string>

#include "defects.hpp"

namespace {

// Returns true if the parser reports an error for this invalid text.
bool refused(const std::string &text) {
  const toml::parse_result result = toml::parse(text);
  return !result && !result.error().description().empty();
}

// A character from U+00A1 to U+0499 outside a string reaches __builtin_unreachable().
bool unreachable() {
  const char *const characters[] = {"\xC2\xA1", "\xC3\xA9", "\xC4\x80", "\xD0\x96", "\xD2\x99"};
  for (const char *c : characters)
    if (!refused(std::string(c)) || !refused("a = 1 " + std::string(c) + "\n")) return false;
  return true;
}

// A table header that does not begin with a key fails an assertion.
bool header_assertion() {
  return refused("[/") && refused("[[=]]\n");
}

// A dotted key may have any number of parts, each a table in the previous one.
bool dotted_depth() {
  std::string key = "a";
  for (int i = 0; i < 1000; ++i) key += ".a";
  return refused(key + " = 1\n") && refused("[" + key + "]\n") &&
         refused("x = {" + key + " = 1}\n");
}

}  // namespace

int main() {
  probe("unreachable", unreachable);
  probe("header-assertion", header_assertion);
  probe("dotted-depth", dotted_depth);
}
