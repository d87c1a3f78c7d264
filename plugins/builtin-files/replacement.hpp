// Replaces files atomically: writes a temporary file in the same folder, then renames it. Readers
// see either the old or the new content, even after a crash.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "builtin-files/workspace.hpp"

namespace builtin_files {

// Specifies which existing entries a rename may replace.
enum class Over { nothing, files, anything };

class Replacement {
 public:
  Replacement() noexcept = default;
  // Removes the temporary file unless commit() has succeeded.
  ~Replacement();
  Replacement(const Replacement &) = delete;
  Replacement &operator=(const Replacement &) = delete;

  // Creates and locks the temporary file in the folder of `place`. Fails if another writer holds
  // the lock. Removes a temporary file that was left behind by a killed writer. `place` must
  // outlive this object. Returns false and sets *problem on failure.
  bool begin(const Place &place, std::string *problem);

  int fd() const noexcept { return fd_.get(); }

  // Appends bytes. Returns false and sets *problem on failure, for example if the disk is full.
  bool write(std::string_view bytes, std::string *problem);

  // Renames the temporary file to its final name and sets its permission bits to those in `mode`. A
  // replaced folder (Over::anything) is removed afterwards. On failure, returns false, sets
  // *problem, and changes nothing.
  bool commit(mode_t mode, Over over, std::string *problem);

  // Makes commit() skip fsync. The caller must then sync the files itself, for example all of them
  // at once. Must be called before commit().
  void sync_later() noexcept { sync_ = false; }

 private:
  bool try_begin(bool *busy);

  const Place *place_ = nullptr;
  std::string temporary_;
  Fd fd_;
  bool sync_ = true;
};

// Atomically renames `from` to `to`; both are names in `folder`. If `over` does not permit
// replacing the target, fails with EEXIST (Over::nothing) or, for a folder, EISDIR (Over::files). A
// replaced folder is removed. Returns false and sets errno on failure.
bool put_in_place(int folder, const std::string &from, const std::string &to, Over over);

}  // namespace builtin_files
