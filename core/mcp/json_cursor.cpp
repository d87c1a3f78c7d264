#include "mcp/json_cursor.hpp"

#include <algorithm>

namespace bulkhead::mcp::json {

const char *value_end(const char *p, const char *end, std::uint32_t depth, Fault *fault) noexcept {
  depth = std::min(depth, deepest);
  LevelBits outer;         // the types of the levels around the innermost one
  bool in_object = false;  // type of the innermost level
  std::uint32_t open = 0;
  std::string_view name;
  for (;;) {
    if (p < end && (*p == '{' || *p == '[')) {
      if (open == depth) {
        *fault = {too_deep, p};
        return nullptr;
      }
      outer.set(open++, in_object);
      in_object = *p == '{';
      p = space_end(p + 1, end);
      if (p < end && *p == (in_object ? '}' : ']')) {
        ++p;
        in_object = outer.is_object(--open);
      } else {
        if (in_object && (p = key_end(p, end, &name, fault)) == nullptr) return nullptr;
        continue;
      }
    } else {
      p = scalar_end(p, end, fault);
      if (p == nullptr) return nullptr;
    }
    // Close all levels that end directly after this value, and move to the next value.
    for (;;) {
      if (open == 0) return p;
      bool more = false;
      p = separator_end(p, end, in_object ? '}' : ']', &more, fault);
      if (p == nullptr) return nullptr;
      if (more) break;
      in_object = outer.is_object(--open);
    }
    if (in_object && (p = key_end(p, end, &name, fault)) == nullptr) return nullptr;
  }
}

}  // namespace bulkhead::mcp::json
