// Implements the dir_list and file_info tools.
#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/text.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "builtin-files/tools.hpp"
#include "tool-kit/results.hpp"

namespace builtin_files {
namespace {

// dir_list reads and sorts at most this many names.
constexpr std::size_t max_names = 100'000;

std::string mode_text(std::uint32_t mode) {
  char text[8];
  const unsigned bits = mode & 07777;
  text[0] = static_cast<char>('0' + (bits >> 9));
  text[1] = static_cast<char>('0' + (bits >> 6 & 7));
  text[2] = static_cast<char>('0' + (bits >> 3 & 7));
  text[3] = static_cast<char>('0' + (bits & 7));
  return std::string(text, 4);
}

std::string target_of(int fd) {
  std::string target(4096, '\0');
  const ssize_t n = ::readlinkat(fd, "", target.data(), target.size());
  target.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return target;
}

}  // namespace

std::string entry_json(std::string_view key, const std::string &name, const struct stat &s) {
  std::string out = "{\"" + std::string(key) + "\":" + bh::json::quoted(name);
  out += ",\"type\":\"" + std::string(type_name(s.st_mode)) + "\"";
  out += ",\"size\":" + std::to_string(s.st_size);
  return out + ",\"modified\":\"" + utc_time(s.st_mtim.tv_sec) + "\"";
}

std::string entry_line(const std::string &name, const struct stat &s) {
  std::string line = name;
  if (S_ISDIR(s.st_mode)) return line + "/\n";
  if (S_ISREG(s.st_mode)) {
    line += "  " + std::to_string(s.st_size) + " bytes";
  } else {
    line += "  (" + std::string(type_name(s.st_mode)) + ")";
  }
  return line + "  " + utc_time(s.st_mtim.tv_sec) + "\n";
}

std::string_view type_name(std::uint32_t mode) {
  if (S_ISREG(mode)) return "file";
  if (S_ISDIR(mode)) return "directory";
  return S_ISLNK(mode) ? "symlink" : "other";
}

std::string utc_time(std::int64_t unix_seconds) {
  const time_t t = unix_seconds;
  tm parts{};
  char text[64];
  if (::gmtime_r(&t, &parts) == nullptr) return "";
  return std::string(text, ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

std::string dir_list(const Call &call) {
  const Workspace &workspace = call.workspace();
  const std::string path = call.arguments.text("path", ".");
  if (const std::string &p = call.arguments.problem(); !p.empty()) return tool_kit::error_result(p);
  Opened opened = workspace.open(path, O_RDONLY | O_DIRECTORY);
  if (!opened.fd.valid()) return tool_kit::error_result(opened.problem);
  const int fd = opened.fd.get();
  const OpenDirectory dir(::fdopendir(fd));
  if (!dir) return tool_kit::error_result(bh::error_name(errno));
  opened.fd.release();

  std::vector<std::string> names;
  while (const dirent *entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || is_temporary_name(name)) continue;
    if (names.size() == max_names || call.must_stop()) break;
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  const std::size_t shown = std::min(names.size(), max_entries);
  const std::size_t more = names.size() - shown;

  std::string text;
  std::string json = "{\"path\":" + bh::json::quoted(path) + ",\"entries\":[";
  for (std::size_t i = 0; i < shown; ++i) {
    struct stat s{};
    // Skips files that were removed after the folder was read.
    if (::fstatat(fd, names[i].c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (json.back() != '[') json += ',';
    json += entry_json("name", names[i], s) + "}";
    text += entry_line(names[i], s);
  }
  json += "],\"more\":" + std::to_string(more) + "}";
  if (names.empty()) text = "The folder is empty.\n";
  if (more > 0) {
    text += std::to_string(more) +
            (names.size() == max_names ? " or more entries" : " further entries") +
            " are not shown; use file_search to find them.\n";
  }
  return tool_kit::text_result(text, json);
}

std::string file_info(const Call &call) {
  const Workspace &workspace = call.workspace();
  const std::string path = call.arguments.text("path");
  if (const std::string &p = call.arguments.problem(); !p.empty()) return tool_kit::error_result(p);
  const Opened opened = workspace.open(path, O_PATH | O_NOFOLLOW);
  if (!opened.fd.valid()) return tool_kit::error_result(opened.problem);
  struct stat s{};
  if (::fstat(opened.fd.get(), &s) != 0) return tool_kit::error_result(bh::error_name(errno));
  std::string json = entry_json("path", path, s);
  std::string text = path + ": " + std::string(type_name(s.st_mode)) + ", " +
                     std::to_string(s.st_size) + " bytes, modified " + utc_time(s.st_mtim.tv_sec) +
                     ", mode " + mode_text(s.st_mode);
  json += ",\"mode\":\"" + mode_text(s.st_mode) + "\"";
  if (S_ISLNK(s.st_mode)) {
    const std::string target = target_of(opened.fd.get());
    json += ",\"target\":" + bh::json::quoted(target);
    text += ", points to " + target;
  }
  return tool_kit::text_result(text, json + "}");
}

}  // namespace builtin_files
