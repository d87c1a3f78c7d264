// Replaces the content of a file atomically: writes the new content to a temporary file in the same
// folder and renames it. Readers see either the old or the new content, even after a crash.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "builtin-files/workspace.hpp"

namespace builtin_files {

// The types of existing entries that the new file may replace.
enum class Over { nothing, files, anything };

class Replacement {
 public:
  Replacement() noexcept = default;
  // Removes the temporary file unless commit() succeeded.
  ~Replacement();
  Replacement(const Replacement &) = delete;
  Replacement &operator=(const Replacement &) = delete;

  // Creates the temporary file in the folder of `place` for exclusive use: a second writer is
  // rejected. A temporary file left by a killed writer is removed. `place` must outlive this
  // object. Returns false and sets *problem on failure.
  bool begin(const Place &place, std::string *problem);

  int fd() const noexcept { return fd_.get(); }

  // Appends bytes. Returns false and sets *problem on failure, for example if the disk is full.
  bool write(std::string_view bytes, std::string *problem);

  // Renames the temporary file to its final name. `mode` contains its permission bits. A replaced
  // folder (Over::anything) is removed afterwards. On failure, returns false, sets *problem, and
  // changes nothing.
  bool commit(mode_t mode, Over over, std::string *problem);

  // Leaves fsync to the caller, which can sync many files at once. Must be called before commit().
  void sync_later() noexcept { sync_ = false; }

 private:
  bool try_begin(bool *busy);

  const Place *place_ = nullptr;
  std::string temporary_;
  Fd fd_;
  bool sync_ = true;
};

// Renames `from` to `to` atomically; both are in the open folder. Depending on `over`, an existing
// target is kept (errno is EEXIST) or replaced. A replaced folder is removed.
bool put_in_place(int folder, const std::string &from, const std::string &to, Over over);

}  // namespace builtin_files
