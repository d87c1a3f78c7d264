// Merges imported servers into a profile's text. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/import.hpp"
#include "profile/layer.hpp"

namespace bulkhead {

struct MergedServer {
  // `kept`: the profile has the same definition. `differs`: the profile has a different definition,
  // and keeps it. `replaced`: the imported definition has replaced a different one. `refused`:
  // load_profile() would reject the imported server.
  enum class State : std::uint8_t { added, replaced, kept, differs, refused };
  const ImportedServer *from = nullptr;
  std::string name;  // name in the profile
  State state = State::added;
  // Set for `differs` and `replaced`: the differing keys, such as "args" or "env.TOKEN".
  std::vector<std::string> differences;
  bool disabled = false;  // whether the profile's server is disabled
};
std::string_view to_string(MergedServer::State state) noexcept;

struct ServerMerge {
  std::string text;                   // the new text, in which all other servers are unchanged
  std::vector<MergedServer> servers;  // in the order of the imported servers
};

// If `replace` is set and the definitions differ, the imported definition replaces the definition
// in the profile. Keys that not all clients have (see is_client_key()), such as sandbox, roots and
// allowTools, are compared and replaced only if the imported server has them. Whether a server is
// enabled or disabled is not compared. `imported` must outlive the result.
// Returns BH_E_INVALID or BH_E_UNSUPPORTED if the file cannot be parsed or edited.
Result<ServerMerge> merge_servers(const ProfileLayer &file,
                                  const std::vector<ImportedServer> &imported, bool replace);

}  // namespace bulkhead
