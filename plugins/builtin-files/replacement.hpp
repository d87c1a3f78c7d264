// Replaces the content of a file atomically: the new content is written to a temporary file beside
// it and renamed. Readers, and a crash, see the old content or the new one.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "builtin-files/workspace.hpp"

namespace builtin_files {

// Existing objects that the new file may replace.
enum class Over { nothing, files, anything };

class Replacement {
 public:
  Replacement() noexcept = default;
  // Removes the temporary file unless it was committed.
  ~Replacement();
  Replacement(const Replacement &) = delete;
  Replacement &operator=(const Replacement &) = delete;

  // Creates the temporary file beside place.name, exclusively: a second writer is rejected. The
  // temporary file of a killed writer is removed. `place` must outlive this object. False:
  // *problem.
  bool begin(const Place &place, std::string *problem);

  int fd() const noexcept { return fd_.get(); }

  // Appends bytes. False: *problem, for example because the disk is full.
  bool write(std::string_view bytes, std::string *problem);

  // Renames the temporary file. mode: its permission bits. A folder that is replaced (`anything`)
  // is removed afterwards. False: *problem, and nothing is changed.
  bool commit(mode_t mode, Over over, std::string *problem);

  // Leaves fsync to the caller, for many files at once. Call before commit().
  void sync_later() noexcept { sync_ = false; }

 private:
  bool try_begin(bool *busy);

  const Place *place_ = nullptr;
  std::string temporary_;
  Fd fd_;
  bool sync_ = true;
};

// Renames `from` to `to` atomically, both in the same open folder. An existing target is kept
// (errno is EEXIST), replaced, or, if it is a folder, moved away and removed.
bool put_in_place(int folder, const std::string &from, const std::string &to, Over over);

}  // namespace builtin_files
