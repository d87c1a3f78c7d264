// The values of a tool's definition as lines of text, and the differences between two definitions,
// for the user who approves a change. Definitions come from servers and are untrusted: hidden
// characters are written as \u escapes.
//
// Values are complete, because a truncated value could hide a change. They are limited by the
// length of stored definitions (max_pin_definition_bytes).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "state/pin_store.hpp"

namespace bulkhead::program {

// One value, such as {"inputSchema.properties.path.type", "\"string\""}. An empty object or array
// is a value.
struct DefinitionLine {
  std::string path, value;
  friend auto operator<=>(const DefinitionLine &, const DefinitionLine &) = default;
};

// Maximum size of all lines of a definition: values and their paths.
inline constexpr std::size_t max_definition_lines_bytes = 1u << 20;
// Returns the values in the order of the definition. Returns none if the text is not a JSON object,
// and the whole definition as one line if the lines would be longer than
// max_definition_lines_bytes.
std::vector<DefinitionLine> definition_lines(std::string_view definition);

// The values that only one of two definitions has, ordered by path.
struct DefinitionDiff {
  std::vector<DefinitionLine> removed, added;
};
DefinitionDiff compare_definitions(std::string_view approved, std::string_view current);

// Describes what a new definition changes, in indented lines: the differences, or the current
// definition and what is known about the approved definition. For an approved or new tool, returns
// the definition.
std::string describe_definitions(const StoredPin &pin);
// The differences as a JSON array of {"change": "removed" or "added", "path", "value"}; null if one
// of the definitions is not stored.
std::string differences_json(const StoredPin &pin);

}  // namespace bulkhead::program
