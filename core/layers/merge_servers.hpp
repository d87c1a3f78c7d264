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
  // which is kept. `refused`: load_profile() would reject the imported server.
  enum class State : std::uint8_t { added, replaced, kept, differs, refused };
  const ImportedServer *from = nullptr;
  std::string name;  // in the profile
  State state = State::added;
  // For `differs` and `replaced`: the keys that differ, such as "args" or "env.TOKEN".
  std::vector<std::string> differences;
  bool disabled = false;  // in the profile
};
std::string_view to_string(MergedServer::State state) noexcept;

struct ServerMerge {
  std::string text;  // the file's text with servers added and replaced; other servers are unchanged
  std::vector<MergedServer> servers;  // in the order of the imported servers
};

// If `replace` is set, a server whose definition differs is replaced, including keys that only the
// profile's definition has. Keys that clients do not support (sandbox, roots, allowTools ...) are
// compared only if the imported server has them. The enabled state is not compared. `imported` must
// outlive the result. Returns BH_E_INVALID or BH_E_UNSUPPORTED if the file cannot be read or
// edited.
Result<ServerMerge> merge_servers(const ProfileLayer &file,
                                  const std::vector<ImportedServer> &imported, bool replace);

}  // namespace bulkhead
