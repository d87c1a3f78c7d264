// Opens and verifies a plugin's file. It is opened only once, so the file that is mapped is the one
// that was verified. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead {

// Opens a folder. Rejects it if anyone other than root and this user can change it. Follows
// symbolic links in the path.
Result<OwnedFd> open_trusted_folder(const std::string &folder);

// Opens a regular file and stores the result of fstat() in *status. Rejects symbolic links, and
// files that anyone other than root and this user can change. Returns BH_E_NOT_FOUND if there is no
// such file.
Result<OwnedFd> open_trusted_file(int folder_fd, const std::string &folder, const std::string &name,
                                  struct stat *status);

// Verifies that the file is a complete shared library for this machine. If a truncated file were
// mapped, a later access to a missing page would terminate the process with SIGBUS.
Result<void> check_elf(int fd, std::uint64_t size);

// Returns the library's exported names without running its code. The file must have passed
// check_elf().
Result<std::vector<std::string>> read_exports(int fd);

// Returns the content of a section, or an empty string if there is no such section. The file must
// have passed check_elf(). Returns BH_E_LIMIT if the section has more than `most` bytes.
Result<std::string> read_section(int fd, std::string_view name, std::size_t most);

// Returns the SHA-256 of the file in lowercase hexadecimal.
Result<std::string> sha256_of(int fd);
std::string sha256_of_text(std::string_view text);

// Reads the rest of the file. Returns BH_E_INVALID if it has more than `most` bytes. `path` is for
// messages.
Result<std::string> read_bounded(int fd, const std::string &path, std::size_t most);

// Maps a sealed file for reading.
class FileView {
 public:
  static Result<FileView> of(int fd);
  FileView(FileView &&other) noexcept : text_(std::exchange(other.text_, {})) {}
  FileView &operator=(FileView &&) = delete;
  ~FileView();
  std::string_view text() const noexcept { return text_; }

 private:
  explicit FileView(std::string_view text) : text_(text) {}
  std::string_view text_;
};

}  // namespace bulkhead
