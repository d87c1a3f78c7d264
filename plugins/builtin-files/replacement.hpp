// New content for one file, written beside it and put into its place in one step: whoever looks,
// or pulls the plug, finds the old content or the new one.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "builtin-files/workspace.hpp"

namespace builtin_files {

// What a new file may take the place of.
enum class Over { nothing, files, anything };

class Replacement {
 public:
  Replacement() noexcept = default;
  // Removes what was not put into place.
  ~Replacement();
  Replacement(const Replacement &) = delete;
  Replacement &operator=(const Replacement &) = delete;

  // Makes the file beside place.name, for this writer alone: a second one is refused meanwhile.
  // What a writer that was killed has left is removed. `place` must outlive this. False: *problem.
  bool begin(const Place &place, std::string *problem);

  int fd() const noexcept { return fd_.get(); }

  // Appends. False: *problem; the disk may be full.
  bool write(std::string_view bytes, std::string *problem);

  // Puts it into place. mode: its permission bits. A folder that it takes the place of (`anything`)
  // is removed afterwards. False: *problem, and everything is as it was.
  bool commit(mode_t mode, Over over, std::string *problem);

  // Leaves it to the caller to bring it to the disk: for many files at once. Before commit().
  void sync_later() noexcept { sync_ = false; }

 private:
  bool try_begin(bool *busy);

  const Place *place_ = nullptr;
  std::string temporary_;
  Fd fd_;
  bool sync_ = true;
};

// Puts `from` into the place of `to` in one step, both names in the same open folder. What is there
// is kept (then errno is EEXIST), replaced, or, a folder, taken out and removed.
bool put_in_place(int folder, const std::string &from, const std::string &to, Over over);

}  // namespace builtin_files
