// Merging imported servers into the text of a profile. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/import.hpp"
#include "profile/layer.hpp"

namespace bulkhead {

struct MergedServer {
  // kept: the profile has the same definition. differs: it has another one, which stays. refused:
  // load_profile() would reject the imported one.
  enum class State : std::uint8_t { added, replaced, kept, differs, refused };
  const ImportedServer *from = nullptr;
  std::string name;  // in the profile
  State state = State::added;
  // Of differs and replaced: the keys, "args" or "env.TOKEN".
  std::vector<std::string> differences;
  bool disabled = false;  // in the profile
};
std::string_view to_string(MergedServer::State state) noexcept;

struct ServerMerge {
  std::string text;  // the file with the added and replaced servers; all others stay as they are
  std::vector<MergedServer> servers;  // in the order of the imported ones
};

// `replace`: a server whose definition differs is replaced, with the keys that only the profile's
// has. Otherwise these keys (sandbox, roots, allowTools ...) are no difference, and neither is
// whether a server is disabled. `imported` must outlive the result. BH_E_INVALID,
// BH_E_UNSUPPORTED: the file cannot be read or edited.
Result<ServerMerge> merge_servers(const ProfileLayer &file,
                                  const std::vector<ImportedServer> &imported, bool replace);

}  // namespace bulkhead
