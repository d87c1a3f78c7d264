// Remembers which folders servers were able to change, in a file that outlives the gateway. A
// symbolic link in such a folder may have been created by a server, even by one that is no longer
// configured, and is followed only within the folder (link_rule.hpp).
//
// If a link to a credential is in such a folder, its target is remembered as well. It stays hidden
// after a server has removed the link.
//
// The file contains entries that each end with a NUL byte: "w" and a folder, or "h" and a hidden
// path. Several processes may append to it at the same time. To forget everything, delete the file.
//
// Owner: a Spawner. Must be used on one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sandbox/child_view.hpp"

namespace bulkhead {

class GrantRecord {
 public:
  // Maximum number of folders. If there are more, links are followed only within their own folder.
  static constexpr std::size_t most = 4096;
  // Maximum number of hidden paths; further ones are not remembered. The limit is separate because
  // a server can create many links.
  static constexpr std::size_t most_hidden = 256;
  static constexpr std::size_t most_bytes = 1u << 20;  // size of the file

  // Returns the path of the file, or an empty string if there is no state folder.
  static std::string file_in(const std::string &state_dir);

  // If `file` is empty, entries are kept in memory only.
  explicit GrantRecord(std::string file) : file_(std::move(file)) {}

  // Adds the entries to the request. Reads the file again if its size has changed.
  void add_to(ViewRequest *request);
  // Remembers a view before its server starts. If this fails, the entries are in effect until the
  // process ends.
  Result<void> add(const ChildView &view);

 private:
  void read();
  bool insert(char kind, std::string_view path);

  const std::string file_;
  std::size_t read_bytes_ = 0;
  std::vector<std::string> folders_, hidden_;
  bool full_ = false;
};

}  // namespace bulkhead
