// Remembers which folders servers were able to change, in a file that outlives the gateway. A
// symbolic link in such a folder may have been created by a server, even by one that is no longer
// configured, and is followed only within the folder (link_rule.hpp).
//
// If a link to a credential is in such a folder, its target is remembered as well. It stays hidden
// after a server has removed the link.
//
// The file contains entries: "w" and a folder, or "h" and a hidden path. There is a NUL byte before
// and after each entry, so an incomplete entry does not affect the next one. Several processes may
// append to it at the same time. If the file is deleted or replaced while a gateway runs, the
// gateway writes all entries that it knows again. To forget everything, delete it while none runs.
//
// Owner: a Spawner. Must be used on one thread.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <utility>
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
  // process ends, and the next call writes them to the file.
  Result<void> add(const ChildView &view);

 private:
  void read();
  bool insert(char kind, std::string_view path);
  void compare(const struct stat &info);
  void forget_file();
  bool save(int file);

  const std::string file_;
  std::pair<dev_t, ino_t> identity_{};  // of the file; zero if none is known
  std::size_t read_bytes_ = 0;
  std::string unsaved_;  // entries that are to be written to the file
  std::vector<std::string> folders_, hidden_;
  bool full_ = false;
};

}  // namespace bulkhead
