#include "sandbox/grant_record.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/owned_fd.hpp"
#include "bulkhead/cpp/text.hpp"

namespace bulkhead {
namespace {

void append_entry(char kind, std::string_view path, std::string *text) {
  text->append(1, '\0').append(1, kind).append(path).push_back('\0');
}

}  // namespace

std::string GrantRecord::file_in(const std::string &state_dir) {
  return state_dir.empty() ? std::string() : state_dir + "/cache/.granted";
}

bool GrantRecord::insert(char kind, std::string_view path) {
  std::vector<std::string> &list = kind == 'h' ? hidden_ : folders_;
  if (std::find(list.begin(), list.end(), path) != list.end()) return false;
  if (kind == 'h' && hidden_.size() == most_hidden) return false;
  if (kind == 'w' && folders_.size() == most) {
    full_ = true;
    return false;
  }
  list.emplace_back(path);
  return true;
}

// Notices that the file is a different one, or has lost entries, since it was last seen.
void GrantRecord::compare(const struct stat &info) {
  const std::pair found{info.st_dev, info.st_ino};
  const bool known = identity_ != std::pair<dev_t, ino_t>{};
  const bool same = found == identity_ && static_cast<std::size_t>(info.st_size) >= read_bytes_;
  if (known && !same) forget_file();
  identity_ = found;
}

void GrantRecord::forget_file() {
  identity_ = {};
  read_bytes_ = 0;
  unsaved_.clear();
  for (const std::string &path : folders_) append_entry('w', path, &unsaved_);
  for (const std::string &path : hidden_) append_entry('h', path, &unsaved_);
}

void GrantRecord::read() {
  const OwnedFd file(::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (!file && errno == ENOENT && identity_ != std::pair<dev_t, ino_t>{}) forget_file();
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  compare(info);
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == read_bytes_) return;
  full_ = full_ || size > most_bytes;
  std::string text(std::min(size, most_bytes), '\0');
  const ssize_t n = ::read(file.get(), text.data(), text.size());
  if (n < 0) return;
  text.resize(static_cast<std::size_t>(n));
  read_bytes_ = size;
  for (std::size_t at = 0, end; (end = text.find('\0', at)) != std::string::npos; at = end + 1) {
    if (end > at + 1 && text[at + 1] == '/') {
      insert(text[at], std::string_view(text).substr(at + 1, end - at - 1));
    }
  }
}

void GrantRecord::add_to(ViewRequest *request) {
  if (!file_.empty()) read();
  request->changeable.insert(request->changeable.end(), folders_.begin(), folders_.end());
  request->also_hidden.insert(request->also_hidden.end(), hidden_.begin(), hidden_.end());
  request->distrust_links = request->distrust_links || full_;
}

// Appends the unsaved entries. If only some bytes could be written, they are removed again, unless
// another process is writing. Returns false and sets errno on failure.
bool GrantRecord::save(int file) {
  const bool alone = ::flock(file, LOCK_EX | LOCK_NB) == 0;
  struct stat info{};
  if (::fstat(file, &info) != 0) return false;
  compare(info);
  const ssize_t n = ::write(file, unsaved_.data(), unsaved_.size());
  if (n == static_cast<ssize_t>(unsaved_.size())) {
    unsaved_.clear();
    return true;
  }
  const int number = n < 0 ? errno : ENOSPC;
  if (n > 0 && alone) static_cast<void>(::ftruncate(file, info.st_size) == 0);
  errno = number;
  return false;
}

Result<void> GrantRecord::add(const ChildView &view) {
  const auto remember = [&](char kind, const std::string &path) {
    if (insert(kind, path) && !file_.empty()) append_entry(kind, path, &unsaved_);
  };
  for (const ViewStep &step : view.steps) {
    if (step.kind == ViewStep::Kind::bind && step.writable && step.folder && !step.instead &&
        !step.pin) {
      remember('w', step.source);
    }
  }
  for (const std::string &path : view.keep_hidden) remember('h', path);
  if (unsaved_.empty()) return {};
  const OwnedFd file(
      ::open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file && save(file.get())) return {};
  return fail(BH_E_IO, "cannot write " + file_ + ": " + bh::error_name(errno));
}

}  // namespace bulkhead
