#include "kit/new_plugin.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "base/owned_fd.hpp"
#include "bulkhead/cpp/text.hpp"
#include "common/paths.hpp"
#include "common/suggestion.hpp"
#include "common/text.hpp"

namespace bulkhead::program {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> plugin_kinds = {"tools", "policy", "telemetry",
                                                          "connector", "transport"};
constexpr std::size_t max_name = 64;
// Targets that CMake defines itself, and a name that no server can have.
constexpr std::array<std::string_view, 9> reserved = {
    "all", "builtin", "clean", "depend", "help", "install", "package", "preinstall", "test"};

// The names in a source tree. In a template, the ID is hello-KIND (C++) or hello-KIND-c (C). A new
// plugin has the same files, in which each of these three names is replaced.
struct PluginNames {
  std::string id;          // hello-tools: the ID, and the targets of CMake
  std::string file;        // hello_tools: the names of source files
  std::string class_name;  // HelloTools: the beginning of the class's name, HelloToolsPlugin

  explicit PluginNames(std::string_view name) : id(name), file(name) {
    std::replace(file.begin(), file.end(), '-', '_');
    bool upper = true;
    for (const char c : name) {
      if (c != '-') class_name += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
      upper = c == '-';
    }
  }
};

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string renamed(const std::string &text, const PluginNames &from, const PluginNames &to) {
  return replace_all(replace_all(replace_all(text, from.id, to.id), from.file, to.file),
                     from.class_name, to.class_name);
}

// Returns the templates that exist, for an error message: "tools (c++, c), policy (c++)".
std::string existing_templates(const std::string &folder) {
  std::string out;
  for (const std::string_view kind : plugin_kinds) {
    std::string languages;
    for (const auto &[suffix, language] : {std::pair("-cpp", "c++"), std::pair("-c", "c")}) {
      std::error_code error;
      if (!fs::is_directory(folder + "/" + std::string(kind) + suffix, error)) continue;
      languages += (languages.empty() ? "" : ", ") + std::string(language);
    }
    if (languages.empty()) continue;
    out += (out.empty() ? "" : ", ") + std::string(kind) + " (" + languages + ")";
  }
  return out;
}

Result<std::string> find_template(const NewPlugin &wanted) {
  if (std::find(plugin_kinds.begin(), plugin_kinds.end(), wanted.kind) == plugin_kinds.end()) {
    const std::vector<std::string> known(plugin_kinds.begin(), plugin_kinds.end());
    const std::string similar = suggestion(wanted.kind, known);
    return fail(BH_E_INVALID, "\"" + printable(wanted.kind) + "\" is not a kind of plugin; " +
                                  (similar.empty() ? "" : similar + " ") +
                                  "The kinds are tools, policy, telemetry, connector and "
                                  "transport");
  }
  if (wanted.language != "c" && wanted.language != "c++") {
    return fail(BH_E_INVALID, "\"" + printable(wanted.language) +
                                  "\" is not a language of templates; use --lang c++ or --lang c");
  }
  std::string path =
      wanted.templates + "/" + wanted.kind + (wanted.language == "c" ? "-c" : "-cpp");
  std::error_code error;
  if (fs::is_directory(path, error)) return path;
  const std::string existing = existing_templates(wanted.templates);
  if (existing.empty()) {
    return fail(BH_E_NOT_FOUND, "the plugin templates were not found in " +
                                    tilde(wanted.templates) +
                                    "; install the SDK with the program (make install)");
  }
  return fail(BH_E_INVALID, "there is no template for a " + wanted.kind + " plugin in " +
                                wanted.language + "; the templates are " + existing);
}

// Creates files in a folder, and removes them again unless keep() is called.
class NewFolder {
 public:
  NewFolder() = default;
  ~NewFolder() {
    for (const std::string &name : created_) ::unlinkat(fd_.get(), name.c_str(), 0);
    if (own_) ::rmdir(path_.c_str());
  }
  NewFolder(const NewFolder &) = delete;
  NewFolder &operator=(const NewFolder &) = delete;

  Result<void> open(const std::string &path) {
    path_ = path;
    own_ = ::mkdir(path.c_str(), 0755) == 0;
    const std::string shown = printable(tilde(path));
    if (!own_ && errno == ENOENT) {
      return fail(BH_E_NOT_FOUND, "cannot create " + shown + ": create its parent folder first");
    }
    if (!own_ && errno != EEXIST)
      return fail(BH_E_IO, describe_errno("cannot create " + shown, errno));
    fd_ = OwnedFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd_ && errno == ENOTDIR) {
      return fail(BH_E_DENIED, shown + " is not a folder; specify another DIR");
    }
    if (!fd_) return fail(BH_E_IO, describe_errno("cannot open " + shown, errno));
    std::error_code error;
    const bool empty = fs::is_empty(path, error);
    if (error) return fail(BH_E_IO, "cannot read " + shown + ": " + error.message());
    if (!empty) return fail(BH_E_DENIED, shown + " is not empty; specify another DIR");
    return {};
  }

  Result<void> write(const std::string &name, std::string_view text) {
    const OwnedFd file(::openat(fd_.get(), name.c_str(),
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!file) return fail(BH_E_IO, describe_errno("cannot create " + shown(name), errno));
    created_.push_back(name);
    while (!text.empty()) {
      const ssize_t n = ::write(file.get(), text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(BH_E_IO, describe_errno("cannot write " + shown(name), errno));
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
  }

  std::vector<std::string> keep() {
    own_ = false;
    return std::exchange(created_, {});
  }

 private:
  std::string shown(const std::string &name) const { return printable(tilde(path_ + "/" + name)); }

  std::string path_;
  OwnedFd fd_;
  bool own_ = false;  // the folder was created, not only its files
  std::vector<std::string> created_;
};

// Returns the files of a template by name. A template has no folders; a build folder that someone
// has created in it is not part of it.
Result<std::map<std::string, std::string>> read_template(const std::string &path) {
  std::map<std::string, std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::error_code unknown;
    if (!at->is_regular_file(unknown)) continue;
    std::ifstream file(at->path(), std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file.good() && !file.eof()) {
      return fail(BH_E_IO, "cannot read " + tilde(at->path().string()));
    }
    out.emplace(at->path().filename().string(), std::move(text));
  }
  if (error) return fail(BH_E_IO, "cannot read " + tilde(path) + ": " + error.message());
  if (!out.contains("CMakeLists.txt")) {
    return fail(BH_E_NOT_FOUND, tilde(path) + " has no CMakeLists.txt; install the SDK again");
  }
  return out;
}

}  // namespace

Result<void> check_plugin_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  const std::string shown = bh::in_quotes(printable(name), 100);
  if (name.empty() || name.size() > max_name || name[0] < 'a' || name[0] > 'z' ||
      !std::all_of(name.begin(), name.end(), allowed)) {
    return fail(BH_E_INVALID, shown +
                                  " is not a valid plugin name; a name begins with a letter, and "
                                  "has 1 to 64 of the characters a-z, 0-9 and \"-\"");
  }
  if (std::find(reserved.begin(), reserved.end(), name) == reserved.end()) return {};
  return fail(BH_E_INVALID, shown + " is a reserved name; use another one, for example \"my-" +
                                std::string(name) + "\"");
}

Result<std::vector<std::string>> create_plugin(const NewPlugin &wanted) {
  const auto path = find_template(wanted);
  if (!path) return std::unexpected(path.error());
  if (auto valid = check_plugin_name(wanted.name); !valid) return std::unexpected(valid.error());
  const auto files = read_template(*path);
  if (!files) return std::unexpected(files.error());
  const PluginNames from("hello-" + wanted.kind + (wanted.language == "c" ? "-c" : "")),
      to(wanted.name);
  NewFolder folder;
  if (auto opened = folder.open(wanted.target); !opened) return std::unexpected(opened.error());
  for (const auto &[name, text] : *files) {
    auto written = folder.write(renamed(name, from, to), renamed(text, from, to));
    if (!written) return std::unexpected(written.error());
  }
  std::vector<std::string> names = folder.keep();
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace bulkhead::program
