#include "sandbox/grant_record.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/owned_fd.hpp"
#include "bulkhead/cpp/text.hpp"
#include "sandbox/paths.hpp"

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
  std::vector<std::string> &list = kind == 'h' ? hidden_ : kind == 'f' ? full_folders_ : folders_;
  if (std::find(list.begin(), list.end(), path) != list.end()) return false;
  if (kind == 'h') {
    std::size_t bytes = path.size();
    for (const std::string &other : hidden_) bytes += other.size();
    if (hidden_.size() == most_hidden || bytes > most_hidden_bytes) return false;
  }
  if (&list == &folders_ && !has_room(path)) return false;
  list.emplace_back(path);
  return true;
}

// Returns true if the limits permit one more folder. Otherwise, records in full_ or full_folders_
// that a limit has been reached.
bool GrantRecord::has_room(std::string_view folder) {
  const std::string *outer = nullptr;  // the outermost recorded folder that contains the folder
  for (const std::string &other : folders_) {
    if (is_within(folder, other) && (outer == nullptr || other.size() < outer->size())) {
      outer = &other;
    }
  }
  if (outer == nullptr) {
    full_ = full_ || outer_count_ == most || outer_bytes_ + folder.size() > most_bytes;
    if (full_) return false;
    ++outer_count_;
    outer_bytes_ += folder.size();
    return true;
  }
  std::size_t count = 0, bytes = folder.size();
  for (const std::string &other : folders_) {
    if (&other == outer || !is_within(other, *outer)) continue;
    ++count;
    bytes += other.size();
  }
  if (count < most_inside && bytes <= most_inside_bytes) return true;
  if (insert('f', *outer) && !file_.empty()) append_entry('f', *outer, &unsaved_);
  return false;
}

// If the file has been replaced or truncated since it was last used, calls forget_file().
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
  for (const std::string &path : full_folders_) append_entry('f', path, &unsaved_);
  for (const std::string &path : hidden_) append_entry('h', path, &unsaved_);
}

void GrantRecord::read() {
  problem_.clear();
  const OwnedFd file(::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && means_missing(errno)) {
    if (identity_ != std::pair<dev_t, ino_t>{}) forget_file();
    return;
  }
  struct stat info{};
  if (!file || ::fstat(file.get(), &info) != 0) {
    problem_ = "cannot read " + file_ + ": " + bh::error_name(errno);
  } else if (!S_ISREG(info.st_mode)) {
    problem_ = file_ + " is not a file";
  } else {
    compare(info);
    read_entries(file.get(), info);
  }
}

void GrantRecord::read_entries(int file, const struct stat &info) {
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == read_bytes_) return;
  full_ = full_ || size > most_file_bytes;
  std::string text(std::min(size, most_file_bytes), '\0');
  std::size_t done = 0;
  for (ssize_t n = 1; n > 0 && done < text.size();) {
    n = ::read(file, text.data() + done, text.size() - done);
    if (n < 0) {
      problem_ = "cannot read " + file_ + ": " + bh::error_name(errno);
      return;
    }
    done += static_cast<std::size_t>(n);
  }
  read_bytes_ = size;
  parse(std::string_view(text).substr(0, done));
}

void GrantRecord::parse(std::string_view text) {
  for (std::size_t at = 0, end; (end = text.find('\0', at)) != text.npos; at = end + 1) {
    if (end > at + 1 && text[at + 1] == '/') insert(text[at], text.substr(at + 1, end - at - 1));
  }
}

// Returns true if the definition names a path in a folder that has reached its limit. Checking the
// real path is sufficient, because links in such a folder are never followed out of it. Also
// returns true if a path does not exist, because its real path is unknown.
bool GrantRecord::names_full_folder(const ViewRequest &request) const {
  if (full_folders_.empty() || request.policy == nullptr) return false;
  const ChildPolicy &policy = *request.policy;
  std::vector<std::string> names{request.program, policy.cwd, policy.home};
  for (const auto *list : {&policy.args, &policy.env_values, &policy.read, &policy.write}) {
    names.insert(names.end(), list->begin(), list->end());
  }
  for (const std::string &arg : policy.args) {
    if (const std::size_t at = arg.find("=/"); at != arg.npos) names.push_back(arg.substr(at + 1));
  }
  return std::any_of(names.begin(), names.end(), [&](const std::string &name) {
    if (!name.starts_with('/')) return false;
    const std::string real = real_path(name);
    return real.empty() || std::any_of(full_folders_.begin(), full_folders_.end(),
                                       [&](const auto &full) { return is_within(real, full); });
  });
}

void GrantRecord::add_to(ViewRequest *request) {
  if (!file_.empty()) read();
  request->changeable.insert(request->changeable.end(), folders_.begin(), folders_.end());
  request->also_hidden.insert(request->also_hidden.end(), hidden_.begin(), hidden_.end());
  if (full_ || !problem_.empty() || names_full_folder(*request)) request->distrust_links = true;
}

// Appends the unsaved entries. If only some bytes could be written, they are removed again, unless
// another process is writing. Returns false and sets errno on failure.
bool GrantRecord::save(int file) {
  const bool alone = ::flock(file, LOCK_EX | LOCK_NB) == 0;
  struct stat info{};
  if (::fstat(file, &info) != 0) return false;
  if (!S_ISREG(info.st_mode)) {
    errno = EINVAL;
    return false;
  }
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
  const OwnedFd file(::open(
      file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (file && save(file.get())) return {};
  return fail(BH_E_IO, "cannot write " + file_ + ": " + bh::error_name(errno));
}

}  // namespace bulkhead
