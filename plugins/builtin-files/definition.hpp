// Builds the tool definitions for tools/list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/workspace.hpp"

namespace builtin_files {

// How a tool affects files. Determines the annotations of the tool.
enum class Effect {
  reads,
  adds,     // creates files or folders; destroys no data
  changes,  // may destroy data; repeating the call has an additional effect
  settles   // may destroy data; repeating the call has no additional effect
};

struct Definition {
  std::string_view name;
  std::string_view title;
  std::string_view description;
  Effect effect;
  std::string properties;     // members of inputSchema.properties, without the outer braces
  std::string_view required;  // quoted names, separated by commas; may be empty
  std::string output;         // JSON schema of structuredContent
};

// Returns one tool definition as JSON. `workspaces` are the names that the tool accepts as its
// `workspace` argument.
std::string definition_json(const Definition &d, const std::vector<std::string_view> &workspaces);

}  // namespace builtin_files
