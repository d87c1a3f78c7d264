// Stores the servers' lists from their last run on disk. Each server has one private file,
// lists/SERVER in the state folder, which is replaced atomically. The texts come from servers and
// are not parsed here.
//
// A file belongs to one definition and contains a keyed hash of it. The key is stored beside the
// files. Without the key, neither the file nor the hash reveals anything about the definition's
// credentials.
//
// Thread-safe. Every function accesses the files.
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

  // Returns the key of the files, which is created if it is missing.
  Result<std::string> key() const;
  // Returns the name that identifies a definition in its file: a keyed hash of its program or URL,
  // arguments, variables, headers, sandbox and hidden tools.
  static std::string name_of(const ServerDef &definition, const std::string &key);

  // Returns no lists if the file does not exist or belongs to a different definition. Returns an
  // error if the file is damaged, belongs to another user or is accessible to others.
  Result<KeptLists> read(const std::string &server, const std::string &definition) const;
  Result<void> write(const std::string &server, const KeptLists &lists) const;

  const std::string &folder() const noexcept { return folder_; }

 private:
  std::string folder_;
};

// Sets the stored lists of the profile's servers, at most max_kept_lists_bytes in total. If a file
// is unreadable, adds a note; the lists are then requested when the server has started.
void load_stored_lists(Profile *profile);
// Does the same for a command that starts no gateway. Does nothing if no list was ever stored,
// because load_stored_lists() would create the folder.
void load_existing_lists(Profile *profile);

}  // namespace bulkhead::program
