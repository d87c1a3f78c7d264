// Remembers which folders servers were able to change, in a file that outlives the gateway. A
// symbolic link in such a folder may have been created by a server, even by one that is no longer
// configured, and is followed only within the folder (link_rule.hpp).
//
// If a link to a credential is in such a folder, the link's target is recorded as well and stays
// hidden after a server has removed the link.
//
// A server can cause any number of entries by links within a folder that it can change. Their
// number is therefore limited for each such folder. If a server names a path in a folder that has
// reached the limit, links in all of that server's paths are followed only within their own folder.
// Other servers are unaffected.
//
// The file contains entries: "w" and a folder, "f" and a folder that has reached its limit, or "h"
// and a hidden path. There is a NUL byte before and after each entry, so an incomplete entry does
// not affect the next one. Several processes may append to the file at the same time. If the file
// is deleted or replaced while a gateway runs, the gateway writes all entries that it knows again.
// To remove all entries, delete the file while no gateway runs.
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
  // Maximum number of folders that are not inside another one, and maximum total length of their
  // paths. If there are more, links are followed only within their own folder.
  static constexpr std::size_t most = 4096, most_bytes = 1u << 20;
  // The same limits for the recorded folders inside one such folder.
  static constexpr std::size_t most_inside = 256, most_inside_bytes = 64u << 10;
  // Maximum number of hidden paths; further ones are not remembered. The limit is separate because
  // a server can create many links.
  static constexpr std::size_t most_hidden = 256, most_hidden_bytes = 32u << 10;
  // Maximum size of the file. If it is larger, links are followed only within their own folder.
  static constexpr std::size_t most_file_bytes = 16u << 20;

  // Returns the path of the file, or an empty string if there is no state folder.
  static std::string file_in(const std::string &state_dir);

  // If `file` is empty, entries are kept in memory only.
  explicit GrantRecord(std::string file) : file_(std::move(file)) {}

  // Adds the entries to the request. Reads the file again if its size has changed. If the file
  // exists and cannot be read, links are followed only within their own folder.
  void add_to(ViewRequest *request);
  // Returns why the last call of add_to() could not read the file, or an empty string.
  const std::string &problem() const noexcept { return problem_; }
  // Records the folders and hidden paths of a view. Must be called before the view's server starts.
  // If writing the file fails, the entries are in effect until the process ends, and the next call
  // tries to write them again.
  Result<void> add(const ChildView &view);

 private:
  void read();
  void read_entries(int file, const struct stat &info);
  void parse(std::string_view text);
  bool insert(char kind, std::string_view path);
  bool has_room(std::string_view folder);
  bool names_full_folder(const ViewRequest &request) const;
  void compare(const struct stat &info);
  void forget_file();
  bool save(int file);

  const std::string file_;
  std::pair<dev_t, ino_t> identity_{};  // of the file; zero if none is known
  std::size_t read_bytes_ = 0;
  std::string unsaved_;  // entries that are to be written to the file
  std::vector<std::string> folders_, full_folders_, hidden_;
  std::size_t outer_count_ = 0, outer_bytes_ = 0;  // folders that are not inside another one
  std::string problem_;
  bool full_ = false;
};

}  // namespace bulkhead
