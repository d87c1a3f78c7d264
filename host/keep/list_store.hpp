// What servers listed when they last ran, on disk: lists/SERVER in the state folder, one file
// for each server, ours and closed to others, replaced as a whole. The texts are the servers', and
// nobody here looks into them.
//
// A file is for one definition: it names a hash of it, made with a key beside the files, so that
// neither a file nor who is told the hash tells anything of the definition's credentials without
// that key.
//
// Thread: any; every function reads or writes the files anew.
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

  // The key that goes with the files; made, if there is none.
  Result<std::string> key() const;
  // As it is named in the file: its program or address, arguments, variables, headers, sandbox, and
  // which tools it hides.
  static std::string name_of(const ServerDef &definition, const std::string &key);

  // No file, or one for another definition: no lists. A file that is damaged, not ours or open to
  // others is an error.
  Result<KeptLists> read(const std::string &server, const std::string &definition) const;
  Result<void> write(const std::string &server, const KeptLists &lists) const;

  const std::string &folder() const noexcept { return folder_; }

 private:
  std::string folder_;
};

// Fills in what is known of the profile's servers, max_kept_lists_bytes of all. What cannot be read
// is a note: such a server is listed when it has started.
void recall_lists(Profile *profile);

}  // namespace bulkhead::program
