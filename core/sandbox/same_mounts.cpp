#include "sandbox/same_mounts.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "base/owned_fd.hpp"
#include "sandbox/paths.hpp"

namespace bulkhead {
namespace {

std::string_view next_field(std::string_view *line) {
  const std::string_view field = line->substr(0, line->find(' '));
  line->remove_prefix(std::min(line->size(), field.size() + 1));
  return field;
}

// The kernel writes spaces, tabs, line ends and backslashes as "\" and three octal digits.
std::string without_escapes(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 3 >= text.size()) {
      out += text[i];
      continue;
    }
    int value = 0;
    for (int digit = 1; digit <= 3; ++digit) value = value * 8 + (text[i + digit] - '0');
    out += static_cast<char>(value);
    i += 3;
  }
  return out;
}

// Returns `path` with its leading folder `from` replaced by `to`.
std::string moved(const std::string &path, const std::string &from, const std::string &to) {
  const std::string rest = from == "/" ? path : path.substr(from.size());
  if (rest.empty() || rest == "/") return to;
  return to == "/" ? rest : to + rest;
}

std::atomic<std::size_t> failed_reads{0};

bool same_file(const std::string &a, const std::string &b) {
  struct stat first{}, second{};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace

MountTable MountTable::parse(std::string_view text) {
  MountTable table;
  while (!text.empty() && table.mounts_.size() < most) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    next_field(&line);  // the mount's id
    next_field(&line);  // its parent's id
    Mount mount;
    mount.device = next_field(&line);
    mount.root = without_escapes(next_field(&line));
    mount.at = without_escapes(next_field(&line));
    const bool usable = mount.root.starts_with('/') && mount.at.starts_with('/');
    if (usable) table.mounts_.push_back(std::move(mount));
  }
  return table;
}

MountTable MountTable::of_this_process() {
  const OwnedFd file(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 16'384> buffer;
  ssize_t n = file ? 1 : -1;
  while (n > 0 && (n = ::read(file.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  MountTable table = parse(text);
  if (n < 0 || table.mounts_.size() == most) ++failed_reads;
  return table;
}

std::size_t MountTable::failures() noexcept {
  return failed_reads;
}

std::vector<MountTable::Other> MountTable::others(const std::string &path, bool visible) const {
  const Mount *own = nullptr;
  for (const Mount &mount : mounts_) {
    // Of several mounts on one folder, the last one is visible.
    if (is_within(path, mount.at) && (own == nullptr || mount.at.size() >= own->at.size())) {
      own = &mount;
    }
  }
  std::vector<Other> out;
  if (own == nullptr) return out;
  const std::string place = moved(path, own->at, own->root);  // the path in the file system
  for (const Mount &mount : mounts_) {
    if (mount.device != own->device) continue;
    Other other;
    if (is_within(place, mount.root)) {
      other = {moved(place, mount.root, mount.at), path};
    } else if (is_within(mount.root, place)) {
      other = {mount.at, moved(mount.root, place, path)};
    } else {
      continue;
    }
    if (other.at == other.inside || (visible && !same_file(other.at, other.inside))) continue;
    out.push_back(std::move(other));
  }
  return out;
}

}  // namespace bulkhead
