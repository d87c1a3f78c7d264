// Stores the lists (tools, resources and prompts) that servers returned in earlier runs.
//
// The lists of a server are stored in the private file lists/SERVER in the state directory, which
// is replaced atomically. The texts come from servers and are not parsed here.
//
// Stored lists are valid only for an unchanged server definition, so each file contains a keyed
// hash of the definition. The definition may contain credentials. Without the key, which is stored
// in the same directory, the hash reveals nothing about them.
//
// Thread-safe. Every function accesses the disk.
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

  // Returns the hash key. Creates the key if it does not exist.
  Result<std::string> key() const;
  // Returns the keyed hash of a definition. It covers the program or URL, arguments, variables,
  // headers, sandbox and hidden tools.
  static std::string name_of(const ServerDef &definition, const std::string &key);

  // Returns the stored lists. There are none if the file does not exist or was stored for a
  // different definition. Returns an error if the file is damaged, belongs to another user or is
  // accessible to others.
  Result<KeptLists> read(const std::string &server, const std::string &definition) const;
  Result<void> write(const std::string &server, const KeptLists &lists) const;

  const std::string &folder() const noexcept { return folder_; }

 private:
  std::string folder_;
};

// Sets `kept` of each shared server in the profile to its stored lists, which are limited to
// max_kept_lists_bytes in total. If a file cannot be read, a note is added and the lists of that
// server are requested once it has started.
void load_stored_lists(Profile *profile);
// Does the same for a command that starts no gateway. Does nothing if no list was ever stored,
// because load_stored_lists() would create the folder.
void load_existing_lists(Profile *profile);

}  // namespace bulkhead::program
