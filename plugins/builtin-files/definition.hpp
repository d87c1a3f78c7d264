// How tools are described to clients.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/workspace.hpp"

namespace builtin_files {

// What a client may assume of a tool, before it asks a person.
enum class Effect {
  reads,
  adds,     // changes, but takes nothing away
  changes,  // may take away what was there; twice is not once
  settles   // as changes, but doing it twice is doing it once
};

struct Definition {
  std::string_view name;
  std::string_view title;
  std::string_view description;
  Effect effect;
  std::string properties;     // of inputSchema, without braces
  std::string_view required;  // names, in quotes, with commas
  std::string output;         // the schema of structuredContent
};

// One tool for tools/list; workspaces: those that it can be used with.
std::string definition_json(const Definition &d, const std::vector<std::string_view> &workspaces);

}  // namespace builtin_files
