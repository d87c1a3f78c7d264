// The configuration of this plugin.
#pragma once

#include <bulkhead/cpp/basics.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace builtin_files {

inline constexpr std::string_view config_schema = R"({
  "type":"object","additionalProperties":false,
  "properties":{
    "path":{"type":"string","minLength":1,
            "description":"One folder, named \"work\"; the default is the current folder"},
    "workspaces":{"type":"array","minItems":1,"maxItems":32,"items":{
      "type":"object","additionalProperties":false,"required":["name","path"],
      "properties":{"name":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,64}$"},
                    "path":{"type":"string","minLength":1},
                    "write":{"type":"boolean",
                             "description":"No tool of this version writes: only false"}}}}
  }})";

struct WorkspaceConfig {
  std::string name;
  std::string path;  // relative to the folder that the gateway was started in, or absolute
};

// BH_E_INVALID says what is wrong.
bh_status parse_config(std::string_view json, std::vector<WorkspaceConfig> *out, bh_error *error);

}  // namespace builtin_files
