#pragma once

#include <bulkhead/cpp/basics.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/workspace.hpp"

namespace builtin_files {

inline constexpr std::string_view config_schema = R"({
  "type":"object","additionalProperties":false,
  "properties":{
    "path":{"type":"string","minLength":1,
            "description":"One folder, named \"work\"; the default is the working directory"},
    "write":{"type":"boolean","default":false,
             "description":"With path: allow tools to change files"},
    "write_bytes":{"type":"integer","minimum":0,"default":1073741824,"description":
      "With path: maximum number of bytes that tools may write until the plugin is restarted"},
    "workspaces":{"type":"array","minItems":1,"maxItems":32,"items":{
      "type":"object","additionalProperties":false,"required":["name","path"],
      "properties":{"name":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,64}$"},
                    "path":{"type":"string","minLength":1},
                    "write":{"type":"boolean","default":false},
                    "write_bytes":{"type":"integer","minimum":0,"default":1073741824}}}},
    "resolved":{"type":"boolean","default":false,
                "description":"Set by the gateway: the paths must not contain symbolic links"},
    "snapshots":{"type":"object","additionalProperties":false,"required":["path"],"properties":{
      "path":{"type":"string","minLength":1,
              "description":"Folder for snapshots, outside the workspaces"},
      "interval_s":{"type":"integer","minimum":0,"maximum":86400,"default":300,
                    "description":"Interval of automatic snapshots, in seconds; 0 disables them"},
      "before_changes":{"type":"boolean","default":false,
                        "description":"Take an automatic snapshot before each destructive call"},
      "max_bytes":{"type":"integer","minimum":1048576,"default":4294967296,
                   "description":"Maximum size of all snapshots of one workspace, in bytes"},
      "max_file_bytes":{"type":"integer","minimum":1024,"default":268435456,
                        "description":"Limit in bytes; larger files are skipped and reported"}}}
  }})";

struct WorkspaceConfig {
  std::string name;
  std::string path;  // absolute, or relative to the gateway's working directory at start
  bool write = false;
  std::uint64_t write_bytes = 1u << 30;  // limit for the bytes written by all tools
};

struct SnapshotConfig {
  std::string path;
  std::uint64_t interval_s = 300;  // 0 disables automatic snapshots at intervals
  bool before_changes = false;
  std::uint64_t max_bytes = 4ull << 30;
  std::uint64_t max_file_bytes = 256u << 20;
};

struct Config {
  std::vector<WorkspaceConfig> workspaces;
  std::optional<SnapshotConfig> snapshots;
  Links links = Links::follow;  // in the paths of the workspaces and of the snapshot folder
};

// Returns BH_E_INVALID and sets *error if the configuration is invalid.
bh_status parse_config(std::string_view json, Config *out, bh_error *error);

}  // namespace builtin_files
