// Formats tool definitions and their differences for the user who approves a change. Definitions
// come from servers and are untrusted: hidden characters are written as \u escapes.
//
// Values are never truncated, because a truncated value could hide a change. Stored definitions are
// limited to max_pin_definition_bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "state/pin_store.hpp"

namespace bulkhead::program {

// A value in a definition, such as {"inputSchema.properties.path.type", "\"string\""}. Empty
// objects and arrays also count as values.
struct DefinitionLine {
  std::string path, value;
  friend auto operator<=>(const DefinitionLine &, const DefinitionLine &) = default;
};

// Limit on the total size of a definition's lines, including the paths.
inline constexpr std::size_t max_definition_lines_bytes = 1u << 20;
// Returns the values in the order in which the definition contains them. If the lines would exceed
// max_definition_lines_bytes, returns the whole definition as one line. Returns no lines if the
// text is not a JSON object.
std::vector<DefinitionLine> definition_lines(std::string_view definition);

// The values that are in only one of two definitions, ordered by path.
struct DefinitionDiff {
  std::vector<DefinitionLine> removed, added;
};
DefinitionDiff compare_definitions(std::string_view approved, std::string_view current);

// Returns indented lines that describe what has changed. If a definition is not stored, returns the
// current definition and what is known about the approved one. If nothing has changed or the tool
// is new, returns the definition.
std::string describe_definitions(const StoredPin &pin);
// Returns the differences as a JSON array of {"change": "removed" or "added", "path", "value"}, or
// null if one of the definitions is not stored.
std::string differences_json(const StoredPin &pin);

}  // namespace bulkhead::program
