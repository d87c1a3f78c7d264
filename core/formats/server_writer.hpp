// Converts one server of another client to TOML. Credentials in env, headers and URLs are replaced
// with references. Internal to core/formats.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/import.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Chooses a unique variable name for each credential: SERVER_KEY, or just KEY if KEY already starts
// with SERVER_. Duplicates get a numeric suffix.
class Variables {
 public:
  std::string name(const std::string &server, const std::string &key) {
    const auto found = names_.find({server, key});
    if (found != names_.end()) return found->second;
    const std::string base = variable_for(server, key);
    std::string out = base;
    for (int i = 2; !taken_.insert(out).second; ++i) out = base + '_' + std::to_string(i);
    names_[{server, key}] = out;
    return out;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::string> names_;
  std::set<std::string> taken_;
};

struct WrittenServer {
  std::string table;  // "mcpServers.NAME"
  // The server's keys, env and headers, preceded by comments. The [table] line is not included.
  std::string body;
  // The variables that must be set, as "NAME from FILE".
  std::vector<std::string> variables;
  // The URL is a reference. In that case, the server can be validated only if the referenced
  // variables contain a URL.
  bool url_is_reference = false;

  std::string toml() const { return '[' + table + "]\n" + body; }
};

// Converts the entry of a client's file to a server with this name.
WrittenServer write_server(const FoundConfig &config, const Member &entry, const std::string &name,
                           Variables &variables);

}  // namespace bulkhead::profiles
