// Tool definitions for tools/list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/workspace.hpp"

namespace builtin_files {

// A tool's effect, which determines its annotations.
enum class Effect {
  reads,
  adds,     // adds data without destroying any
  changes,  // may destroy data; not idempotent
  settles   // may destroy data; idempotent
};

struct Definition {
  std::string_view name;
  std::string_view title;
  std::string_view description;
  Effect effect;
  std::string properties;     // properties of inputSchema, without braces
  std::string_view required;  // quoted names, separated by commas
  std::string output;         // the schema of structuredContent
};

// Returns the definition of one tool for tools/list. `workspaces` are the names of the workspaces
// that the tool can use.
std::string definition_json(const Definition &d, const std::vector<std::string_view> &workspaces);

}  // namespace builtin_files
