#include "sandbox/start_folder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

namespace bulkhead {
namespace {

using Args = std::vector<std::string>;

std::string_view base_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1: all of it
}

// How many arguments name the kind of command: "npm exec". None: it is no such command.
std::optional<std::size_t> words_of_runner(std::string_view command, const Args &args) {
  struct Runner {
    std::string_view command;
    std::array<std::string_view, 2> words;
  };
  static constexpr Runner runners[] = {
      {"npx", {}},
      {"bunx", {}},
      {"uvx", {}},
      {"pnpx", {}},
      {"pipx", {"run", {}}},
      {"npm", {"exec", {}}},
      {"npm", {"x", {}}},
      {"pnpm", {"dlx", {}}},
      {"yarn", {"dlx", {}}},
      {"bun", {"x", {}}},
      {"uv", {"tool", "run"}},
  };
  for (const Runner &runner : runners) {
    if (runner.command != command) continue;
    std::size_t count = 0;
    while (count < 2 && !runner.words[count].empty() && count < args.size() &&
           args[count] == runner.words[count]) {
      ++count;
    }
    if (count == 2 || runner.words[count].empty()) return count;
  }
  return std::nullopt;
}

bool is_python(std::string_view command) {
  for (const std::string_view name : {"python", "pypy"}) {
    if (!command.starts_with(name)) continue;
    const std::string_view version = command.substr(name.size());
    return version.find_first_not_of("0123456789.") == std::string_view::npos;
  }
  return false;
}

// The arguments up to and with the module of "python -m"; none: it runs something else.
std::optional<std::size_t> words_of_module(const Args &args) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string &arg = args[i];
    if (arg.size() < 2 || arg[0] != '-') return std::nullopt;  // a script, or "-"
    if (arg[1] == '-') continue;
    // Single letters can stand together: -Im MODULE, -mMODULE, -Xdev.
    for (std::size_t at = 1; at < arg.size(); ++at) {
      const bool last = at + 1 == arg.size();
      if (arg[at] == 'c') return std::nullopt;
      if (arg[at] == 'm') return last ? i + 2 : i + 1;
      if (arg[at] != 'W' && arg[at] != 'X') continue;
      if (last) ++i;  // its value is the next
      break;
    }
  }
  return std::nullopt;
}

bool looks_like_file(std::string_view text) {
  static constexpr std::string_view endings[] = {
      ".js",   ".mjs", ".cjs",    ".ts",      ".mts",  ".cts", ".tsx",  ".jsx", ".py",  ".json",
      ".yaml", ".yml", ".toml",   ".ini",     ".cfg",  ".env", ".conf", ".txt", ".md",  ".csv",
      ".db",   ".xml", ".sqlite", ".sqlite3", ".html", ".log", ".sh",   ".pem", ".key", ".whl"};
  return std::any_of(std::begin(endings), std::end(endings),
                     [&](std::string_view ending) { return text.ends_with(ending); });
}

// By its form only: what lies in the folder is somebody else's. `package`: where one is named, a
// text with a slash is rather that.
bool is_relative_path(std::string_view text, bool package) {
  if (text == "." || text == ".." || text.starts_with("./") || text.starts_with("../")) return true;
  if (text.empty() || text[0] == '/' || text[0] == '~' || text[0] == '@' || package) return false;
  if (text.find_first_of(" \t\n") != std::string_view::npos) return false;
  const std::size_t slash = text.find('/');
  if (text.find(':') < slash) return false;  // a URL, github:owner/name, a text with a name
  return slash != std::string_view::npos || looks_like_file(text);
}

bool takes_package(std::string_view option) {
  static constexpr std::string_view options[] = {"-p", "--package", "--from", "--with", "--spec"};
  return std::find(std::begin(options), std::end(options), option) != std::end(options);
}

// From the argument `from` on. The first one that is no option is a package when `package` says so.
bool has_relative_path(const Args &args, std::size_t from, bool package) {
  bool value_is_package = false;
  for (std::size_t i = from; i < args.size(); ++i) {
    const std::string_view arg = args[i];
    if (arg.starts_with('-')) {
      const std::size_t equals = arg.find('=');
      if (equals != std::string_view::npos &&
          is_relative_path(arg.substr(equals + 1), takes_package(arg.substr(0, equals)))) {
        return true;
      }
      value_is_package = takes_package(arg);
      continue;
    }
    if (is_relative_path(arg, package || value_is_package)) return true;
    if (!value_is_package) package = false;
    value_is_package = false;
  }
  return false;
}

}  // namespace

bool starts_in_private_folder(std::string_view command, const Args &args, std::string_view cwd) {
  if (!cwd.empty()) return false;
  const std::string_view name = base_of(command);
  if (is_python(name)) {
    const auto words = words_of_module(args);
    return words && !has_relative_path(args, std::min(*words, args.size()), false);
  }
  const auto words = words_of_runner(name, args);
  return words && !has_relative_path(args, *words, true);
}

std::string make_private_folder(const std::string &parent, const std::string &name) {
  if (parent.empty()) return {};
  const std::string path = parent + "/" + name;
  struct stat info{};
  std::error_code error;
  // The server may have written beside it: nothing is followed.
  if (::lstat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
    std::filesystem::remove(path, error);
  }
  if (::mkdir(path.c_str(), 0700) == 0) return path;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return {};
  for (const auto &entry : std::filesystem::directory_iterator(path, error)) {
    std::error_code ignored;
    std::filesystem::remove_all(entry.path(), ignored);
  }
  return !error && std::filesystem::is_empty(path, error) ? path : std::string();
}

}  // namespace bulkhead
