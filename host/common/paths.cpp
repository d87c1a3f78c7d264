#include "common/paths.hpp"

#include <fcntl.h>
#include <link.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "bulkhead/cpp/text.hpp"

namespace bulkhead::program {
namespace {

// Returns the value of an environment variable, or an empty string if the value is not an absolute
// path. The XDG specification says that relative paths must be ignored.
std::string absolute_env(const char *name) {
  const char *value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

std::string config_dir() {
  std::string base = absolute_env("XDG_CONFIG_HOME");
  if (base.empty()) base = home_dir() + "/.config";
  return base + "/bulkhead";
}

// Returns a field of this user's entry in the user database, or an empty string if there is no
// entry.
std::string account(char *passwd::*member) {
  std::array<char, 16'384> buffer;
  passwd entry{};
  passwd *found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0) return {};
  return found != nullptr && found->*member != nullptr ? found->*member : "";
}

// Returns the path of this program's executable, or an empty string if it is unknown.
std::string own_executable() {
  std::array<char, 4096> buffer;
  const ssize_t n = ::readlink("/proc/self/exe", buffer.data(), buffer.size());
  if (n <= 0 || static_cast<std::size_t>(n) == buffer.size()) return "";
  return std::string(buffer.data(), static_cast<std::size_t>(n));
}

}  // namespace

std::string home_dir() {
  if (std::string home = absolute_env("HOME"); !home.empty()) return home;
  const std::string known = account(&passwd::pw_dir);
  return known.starts_with('/') ? known : "/";
}

std::string user_name() {
  const std::string known = account(&passwd::pw_name);
  return known.empty() ? std::to_string(::geteuid()) : known;
}

std::string default_config_file() {
  return config_dir() + "/profile.toml";
}

std::string user_layer_file() {
  return config_dir() + "/connectors.json";
}

std::string default_state_dir() {
  std::string base = absolute_env("XDG_STATE_HOME");
  if (base.empty()) base = home_dir() + "/.local/state";
  return base + "/bulkhead";
}

std::string user_plugin_dir() {
  std::string base = absolute_env("XDG_DATA_HOME");
  if (base.empty()) base = home_dir() + "/.local/share";
  return base + "/bulkhead/plugins";
}

std::string own_prefix() {
  std::string path = own_executable();
  for (int up = 0; up < 2 && !path.empty(); ++up) path.resize(path.find_last_of('/'));
  return path;
}

std::string own_plugin_dir() {
  const std::string prefix = own_prefix();
  return own_executable().empty() ? "" : prefix + "/lib/bulkhead/plugins";
}

std::string own_template_dir() {
  return own_prefix() + "/share/bulkhead/template";
}

std::vector<std::string> own_program_files() {
  std::vector<std::string> out;
  std::string executable = own_executable();
  // The kernel appends this if the file was replaced since the start.
  constexpr std::string_view gone = " (deleted)";
  if (executable.ends_with(gone)) executable.resize(executable.size() - gone.size());
  if (!executable.empty()) out.push_back(std::move(executable));
  const auto add = [](dl_phdr_info *info, std::size_t, void *list) {
    if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/') {
      static_cast<std::vector<std::string> *>(list)->emplace_back(info->dlpi_name);
    }
    return 0;
  };
  ::dl_iterate_phdr(add, &out);
  return out;
}

std::vector<std::string> control_dirs() {
  std::vector<std::string> out;
  if (std::string runtime = absolute_env("XDG_RUNTIME_DIR"); !runtime.empty()) {
    out.push_back(runtime + "/bulkhead");
  }
  out.push_back(default_state_dir() + "/run");
  return out;
}

Result<void> make_private_dir(const std::string &path) {
  for (std::size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at);
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return fail(BH_E_INTERNAL, describe_errno("cannot create " + part, errno));
    }
    if (at != std::string::npos) ++at;
  }
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    return fail(BH_E_INTERNAL, describe_errno(path, errno));
  }
  if (S_ISLNK(info.st_mode)) {
    return fail(BH_E_INTERNAL, path + " is a symbolic link, which is not allowed");
  }
  if (!S_ISDIR(info.st_mode)) return fail(BH_E_INTERNAL, path + " is not a folder");
  if (info.st_uid != ::geteuid()) return fail(BH_E_INTERNAL, path + " belongs to another user");
  if ((info.st_mode & 077) != 0 && ::chmod(path.c_str(), 0700) != 0) {
    return fail(BH_E_INTERNAL, path + " is accessible to other users; run chmod 700");
  }
  return {};
}

std::string without_parent_steps(const std::string &path) {
  std::filesystem::path resolved, rest;
  std::error_code error;
  for (const auto &part : std::filesystem::absolute(path, error)) {
    rest /= part;
    if (part != "..") continue;
    resolved = std::filesystem::canonical(resolved / rest, error);
    if (error) return path;
    rest.clear();
  }
  return resolved.empty() || error ? path : (resolved / rest).string();
}

void remove_parent_steps_from_environment() {
  for (const char *name :
       {"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"}) {
    const std::string path = absolute_env(name);
    if (path.empty()) continue;
    // If a folder is missing, a link that is created later must not have an effect either.
    const std::filesystem::path known = without_parent_steps(path);
    ::setenv(name, known.lexically_normal().c_str(), 1);
  }
}

std::string resolved_path(const std::string &path) {
  char *real = path.empty() ? nullptr : ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string out = real;
  std::free(real);
  return out;
}

std::string tilde(std::string_view path) {
  const std::string home = home_dir();
  if (home.size() > 1 && path.starts_with(home) &&
      (path.size() == home.size() || path[home.size()] == '/')) {
    return "~" + std::string(path.substr(home.size()));
  }
  return std::string(path);
}

std::string describe_errno(std::string_view what, int error) {
  return std::string(what) + ": " + bh::error_name(error);
}

}  // namespace bulkhead::program
