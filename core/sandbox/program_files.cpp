#include "sandbox/program_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/owned_fd.hpp"
#include "sandbox/paths.hpp"
#include "sandbox/system_folders.hpp"

namespace bulkhead {
namespace {

using namespace std::string_view_literals;

// Returns true if the file begins like a program, or may not be read.
bool begins_like_a_program(const std::string &path) {
  static constexpr std::string_view starts[] = {"#!"sv, "\177ELF"sv, "MZ"sv, "\0asm"sv};
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  char bytes[4];
  const ssize_t n = file ? ::pread(file.get(), bytes, sizeof bytes, 0) : -1;
  if (n < 0) return true;
  const std::string_view text(bytes, static_cast<std::size_t>(n));
  return std::any_of(std::begin(starts), std::end(starts),
                     [&](std::string_view start) { return text.starts_with(start); });
}

// Returns true if the folder is the top of a package.
bool holds_package(const std::string &folder) {
  static constexpr std::string_view marks[] = {"package.json", "pyproject.toml", "node_modules",
                                               "pyvenv.cfg",
                                               // plugins of coding agents
                                               ".claude-plugin", "gemini-extension.json"};
  return std::any_of(std::begin(marks), std::end(marks),
                     [&](std::string_view mark) { return exists(joined(folder, mark)); });
}

}  // namespace

FileKind kind_of_file(const std::string &path) {
  static constexpr std::string_view endings[] = {".js",  ".mjs", ".cjs", ".ts",  ".py",
                                                 ".rb",  ".sh",  ".jar", ".php", ".pl",
                                                 ".lua", ".dll", ".so"};
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return FileKind::data;
  const bool script = std::any_of(std::begin(endings), std::end(endings),
                                  [&](std::string_view ending) { return path.ends_with(ending); });
  if (script) return FileKind::script;
  const bool executable = (info.st_mode & 0111) != 0 && begins_like_a_program(path);
  return executable ? FileKind::executable : FileKind::data;
}

std::string code_root(const std::string &file, const std::vector<std::string> &homes,
                      const std::string &limit) {
  static constexpr std::string_view modules = "/node_modules/";
  if (const std::size_t at = file.find(modules); at != std::string::npos) {
    return file.substr(0, at + modules.size() - 1);
  }
  const auto may_be = [&](const std::string &root) {
    return root != "/" && !holds_any(root, homes) && (limit.empty() || is_within(root, limit));
  };
  std::string folder = parent_of(file);
  if (base_of(folder) == "bin" && may_be(parent_of(folder)) &&
      base_of(parent_of(folder)) != ".local") {
    return parent_of(folder);
  }
  std::string at = folder;
  for (int up = 0; up < 8 && may_be(at); ++up) {
    if (holds_package(at)) return at;
    at = parent_of(at);
  }
  return folder;
}

ProgramFolder folder_of_program(const std::string &file, bool certainly, const HomeFolders &homes,
                                const std::set<std::string> &hidden,
                                const std::string &changeable) {
  const auto may_be = [&](const std::string &folder) {
    return !homes.are_within(folder) && !is_closed(folder);
  };
  const auto may_show = [&](const std::string &folder) {
    if (!may_be(folder)) return false;
    const auto is_package_in = [&](const std::string &place) {
      return certainly && folder != place &&
             (base_of(folder) == "node_modules" || holds_package(folder));
    };
    return std::none_of(hidden.begin(), hidden.end(), [&](const std::string &place) {
      return is_within(place, folder) || (is_within(folder, place) && !is_package_in(place));
    });
  };
  ProgramFolder out;
  // The installation around a folder `bin` does not depend on what servers can remove.
  const bool installed = certainly && base_of(parent_of(file)) == "bin";
  const std::string root = code_root(file, homes.all(), installed ? std::string() : changeable);
  if (may_show(root)) {
    out.shown = root;
  } else if (may_show(parent_of(file))) {
    out.shown = parent_of(file);
  }
  const std::string wanted = code_root(file, homes.all());
  if (wanted != out.shown && may_be(wanted)) out.wanted = wanted;
  return out;
}

}  // namespace bulkhead
