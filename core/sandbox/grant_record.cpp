#include "sandbox/grant_record.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/owned_fd.hpp"
#include "bulkhead/cpp/text.hpp"

namespace bulkhead {

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

void GrantRecord::read() {
  const OwnedFd file(::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
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

Result<void> GrantRecord::add(const ChildView &view) {
  std::string text;
  const auto remember = [&](char kind, const std::string &path) {
    if (insert(kind, path)) text.append(1, kind).append(path).push_back('\0');
  };
  for (const ViewStep &step : view.steps) {
    if (step.kind == ViewStep::Kind::bind && step.writable && step.folder && !step.instead &&
        !step.pin) {
      remember('w', step.source);
    }
  }
  for (const std::string &path : view.keep_hidden) remember('h', path);
  if (text.empty() || file_.empty()) return {};
  const OwnedFd file(
      ::open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) {
    return {};
  }
  return fail(BH_E_IO, "cannot write " + file_ + ": " + bh::error_name(errno));
}

}  // namespace bulkhead
