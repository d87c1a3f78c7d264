// Stores the lists (tools, resources and prompts) that servers returned in earlier runs.
//
// The lists of each server are stored in a private file, lists/SERVER in the state directory. The
// file is replaced atomically. Its content comes from the server and is not parsed here.
//
// Stored lists are valid only as long as the server's definition does not change, so each file
// contains a hash of the definition. The definition may contain credentials, so the hash is keyed:
// without the key, which is stored in the same directory, the hash reveals nothing about them.
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
  // Returns the keyed hash of a definition. It covers ServerDef::to_json() (the program or URL,
  // arguments, variables, headers, sandbox ...) and the lists of allowed and denied tools.
  static std::string name_of(const ServerDef &definition, const std::string &key);

  // Returns the stored lists, or no lists if the file does not exist or was stored for a different
  // definition. Returns an error if the file is damaged, belongs to another user or is accessible
  // to others.
  Result<KeptLists> read(const std::string &server, const std::string &definition) const;
  Result<void> write(const std::string &server, const KeptLists &lists) const;

  const std::string &folder() const noexcept { return folder_; }

 private:
  std::string folder_;
};

// Sets the `kept` member of each enabled server with SessionScope::shared to the server's stored
// lists. The lists of all servers together are limited to max_kept_lists_bytes. If a file cannot be
// read, adds a note; that server's lists are then requested from the server once it has started.
void load_stored_lists(Profile *profile);
// Like load_stored_lists(), but for commands that start no gateway. If no list was ever stored,
// does nothing, because load_stored_lists() would create the folder.
void load_existing_lists(Profile *profile);

}  // namespace bulkhead::program
