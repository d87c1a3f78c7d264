// Selects recorded calls for `bulkhead calls` and finds mistyped names.
//
// A tool can be named as on its server or as clients see it ("github__get_issue"). The profile's
// naming is applied to the recorded names, so that tools of servers that were removed from the
// profile are found as well.
//
// Used on one thread. Accesses no files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/names.hpp"
#include "command_line/record_arguments.hpp"

namespace bulkhead::program {

// The names that occur in the session database.
struct RecordedNames {
  std::vector<std::string> servers;
  std::vector<std::pair<std::string, std::string>> tools;  // server, the tool's name there
  std::vector<std::string> clients;                        // claimed names and process names
};

class CallFilter {
 public:
  // `server` may be empty. `since` is a timestamp in the session database's format, or empty.
  CallFilter(RecordArguments arguments, std::string server, std::string since,
             const Naming &naming);

  // Returns the conditions, each preceded by " AND ". The result is empty if all calls are
  // selected.
  std::string sql() const;

  // Adds the recorded tools that clients see under the name that was given. This is required only
  // for names that were shortened. Returns true if a tool was added.
  bool add_shortened(const RecordedNames &recorded);

  // Returns an error message for the first given name that is neither recorded nor the name of a
  // server in `servers`. The message suggests similar names.
  std::optional<std::string> unknown_name(const RecordedNames &recorded,
                                          const std::vector<std::string> &servers) const;

 private:
  using Tool = std::pair<std::string, std::string>;  // server, the tool's name there

  bool is_tool(const Tool &recorded) const;
  std::string tool_condition() const;

  const RecordArguments wanted_;
  const std::string server_, since_;
  const Names names_;
  std::string listed_;       // the name that clients see, without aliases
  std::vector<Tool> tools_;  // tools that may have this name
};

}  // namespace bulkhead::program
