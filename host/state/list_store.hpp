// The lists of servers from their last run, on disk: lists/SERVER in the state folder, one private
// file per server, replaced atomically. The texts come from servers and are not parsed here.
//
// A file belongs to one definition: it contains a hash of the definition, keyed with a key beside
// the files. Without that key, neither the file nor the hash reveals anything about the
// definition's credentials.
//
// Thread: any; every function accesses the files.
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

class ListStore {
 public:
  static constexpr std::size_t max_bytes = most_kept_lists * max_kept_list_bytes + (64u << 10);

  explicit ListStore(const std::string &state_dir) : folder_(state_dir + "/lists") {}

  // The key of the files; created if missing.
  Result<std::string> key() const;
  // The name of a definition in the file: a hash of its program or address, arguments, variables,
  // headers, sandbox, and hidden tools.
  static std::string name_of(const ServerDef &definition, const std::string &key);

  // Returns no lists if the file does not exist or belongs to a different definition. An error if
  // the file is damaged, belongs to another user or is open to others.
  Result<KeptLists> read(const std::string &server, const std::string &definition) const;
  Result<void> write(const std::string &server, const KeptLists &lists) const;

  const std::string &folder() const noexcept { return folder_; }

 private:
  std::string folder_;
};

// Sets the stored lists of the profile's servers, at most max_kept_lists_bytes in total. An
// unreadable file becomes a note; such a server is listed after its start.
void load_stored_lists(Profile *profile);

}  // namespace bulkhead::program
