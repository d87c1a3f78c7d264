// New content for one file, written beside it and put into its place in one step: whoever looks,
// or pulls the plug, finds the old content or the new one.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "builtin-files/workspace.hpp"

namespace builtin_files {

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

  // Puts it into place, on the disk. mode: its permission bits. keep_existing: fails if the name
  // is taken. False: *problem, and everything is as it was.
  bool commit(mode_t mode, bool keep_existing, std::string *problem);

 private:
  bool try_begin(bool *busy);
  bool put(bool keep_existing) const noexcept;

  const Place *place_ = nullptr;
  std::string temporary_;
  Fd fd_;
};

}  // namespace builtin_files
