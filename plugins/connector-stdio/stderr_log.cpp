#include "connector-stdio/stderr_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "stdio-lines/text.hpp"

namespace connector_stdio {
namespace {

// Tail keeps more raw text than max_bytes, because sanitizing shortens the text.
constexpr std::size_t kept_raw = 2048;

// Returns true for a stack frame ("    at f (file:1:2)").
bool is_frame(std::string_view line) noexcept {
  const std::size_t text = line.find_first_not_of(" \t");
  return text != 0 && text != line.npos && line.substr(text).starts_with("at ");
}

// Returns true for an error line: "TypeError: ...", "Error [CODE]: ...", "pkg.SomeException: ...".
bool says_error(std::string_view line) noexcept {
  constexpr std::string_view word =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
  const std::size_t end = line.find_first_not_of(word);
  if (end == line.npos || line.find(':', end) == line.npos) return false;
  const std::string_view name = line.substr(0, end), rest = line.substr(end);
  return (name.ends_with("Error") || name.ends_with("Exception")) &&
         (rest.starts_with(':') || rest.starts_with(" ["));
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

RotatedFile::RotatedFile(std::string path, std::uint64_t bound)
    : path_(std::move(path)), bound_(std::max<std::uint64_t>(bound, 1)) {}

RotatedFile::~RotatedFile() {
  if (fd_ >= 0) ::close(fd_);
}

bool RotatedFile::open() {
  // O_NOFOLLOW protects against a symbolic link that another user with write access to the folder
  // has created.
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
               0600);
  struct stat info{};
  if (fd_ < 0 || ::fstat(fd_, &info) != 0) return false;
  size_ = static_cast<std::uint64_t>(info.st_size);
  return true;
}

void RotatedFile::rotate() {
  ::close(std::exchange(fd_, -1));
  ::rename(path_.c_str(), (path_ + ".1").c_str());
}

bool RotatedFile::write(std::string_view text, int *error) {
  if (broken_) return true;
  if (text.size() > bound_) text.remove_prefix(text.size() - bound_);
  bool good = fd_ >= 0 || open();
  if (good && size_ + text.size() > bound_ && size_ > 0) {
    rotate();
    good = open();
  }
  good = good && ::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  size_ += text.size();
  if (!good) *error = errno;
  broken_ = !good;
  return good;
}

void Tail::add(std::string_view text) {
  if (text.size() > 2 * kept_raw) text.remove_prefix(text.size() - 2 * kept_raw);
  last_ += text;
  if (last_.size() <= kept_raw) return;
  last_.erase(0, last_.size() - kept_raw);
  cut_ = true;
}

std::string Tail::text(std::size_t room) const {
  room = std::min(room, max_bytes);
  std::string raw = last_;
  if (cut_ && raw.find('\n') != std::string::npos) raw.erase(0, raw.find('\n'));
  const std::vector<std::string_view> lines = lines_of(raw);
  const auto error = std::find_if(lines.rbegin(), lines.rend(), says_error);
  // The result starts with the last error line.
  const std::string wrong =
      error == lines.rend() ? "" : stdio_lines::cleaned(*error, std::min(room, max_bytes / 2));
  const std::size_t left = room - (wrong.empty() ? 0 : std::min(room, wrong.size() + 3));
  std::string out;
  std::size_t taken = 0;
  for (auto at = lines.rbegin(); at != error && taken < max_lines; ++at) {
    if (is_frame(*at)) continue;
    const std::string line = stdio_lines::cleaned(*at, room);
    if (line.find_first_not_of(' ') == std::string::npos) continue;
    const std::size_t separator = out.empty() ? 0 : 3;
    if (out.size() + line.size() + separator > left) break;
    out.insert(0, separator == 0 ? line : line + " | ");
    ++taken;
  }
  if (!wrong.empty()) out.insert(0, out.empty() ? wrong : wrong + " | ");
  return out;
}

}  // namespace connector_stdio
