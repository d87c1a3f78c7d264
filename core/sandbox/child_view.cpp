#include "sandbox/child_view.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <map>
#include <set>

#include "base/owned_fd.hpp"
#include "sandbox/hidden_places.hpp"
#include "sandbox/program_files.hpp"
#include "sandbox/services.hpp"

namespace bulkhead {
namespace {

using Kind = ViewStep::Kind;
using Mode = ChildPolicy::Mode;

// Top-level folders that are visible in `strict` mode.
constexpr std::string_view system_tops[] = {"bin",    "sbin", "lib",  "lib32", "lib64",
                                            "libx32", "usr",  "etc",  "opt",   "nix",
                                            "gnu",    "dev",  "proc", "sys"};

// Folders that are never granted as a whole, even if a definition names them. For closed_roots,
// this also applies to everything inside them; for closed_tops, it applies only to the folders
// themselves.
constexpr std::string_view closed_roots[] = {"/usr", "/bin",  "/sbin", "/lib", "/lib32", "/lib64",
                                             "/etc", "/boot", "/proc", "/sys", "/dev",   "/run"};
constexpr std::string_view closed_tops[] = {"/",    "/home", "/root",  "/var", "/opt",
                                            "/srv", "/mnt",  "/media", "/tmp", "/var/tmp"};

// Cache folders in the home directory. Each server has private caches so that it cannot plant a
// program in another server's cache. `own` is the name of the private cache. `kept` lists the parts
// of the original folder that remain readable.
struct Cache {
  std::string_view at, own;
  std::array<std::string_view, 3> kept;
};
constexpr Cache caches[] = {
    {".npm", "npm", {}},
    {".cache", "cache", {"ms-playwright", "puppeteer", "huggingface/hub"}},
    {".local/share/uv/tools", "uv-tools", {"*", {}, {}}},
    {".bun/install/cache", "bun", {}},
    {".mcp-auth", "mcp-auth", {}},
    {".config/configstore", "configstore", {}},
};
// Some folders' entries are shown individually. This is the maximum number of entries shown per
// folder.
constexpr std::size_t most_kept = 64;
// Maximum number of visible entries in a mirrored folder.
constexpr std::size_t most_mirrored = 4096;

// Creates a mount target in the server's private folder. Does not follow links, because the server
// can write to that folder.
void make_place(const std::string &own, const std::string &below, bool folder) {
  constexpr int quietly = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  OwnedFd at(::open(own.c_str(), O_PATH | quietly));
  for (std::size_t begin = 1; at && begin < below.size();) {
    const std::size_t end = std::min(below.find('/', begin), below.size());
    const std::string name = below.substr(begin, end - begin);
    if (end == below.size() && !folder) {
      const OwnedFd made(
          ::openat(at.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      return;
    }
    ::mkdirat(at.get(), name.c_str(), 0700);
    at = OwnedFd(::openat(at.get(), name.c_str(), O_PATH | quietly));
    begin = end + 1;
  }
}

class Planner {
 public:
  explicit Planner(const ViewRequest &request)
      : request_(request), policy_(*request.policy), home_(real_path(request.home)) {
    add_home(home_);
    for (const std::string &home : request.homes) add_home(real_path(home));
    gateways_homes_ = homes_.size();
    add_home(real_path(policy_.home));
  }

  ChildView plan() {
    put(Kind::devices, "/dev");
    put(Kind::processes, "/proc");
    for (const std::string &folder : {std::string("/tmp"), real_place("/var/tmp")}) {
      if (is_folder(folder)) put(Kind::scratch, folder);
    }
    if (policy_.mode == Mode::strict) {
      cover_all_but_the_system();
    } else {
      cover_run();
      hide_secrets_of_root();
    }
    hide_services();
    for (const std::string &home : homes_) hide_at_home(home);
    add_caches();
    show_program();
    for (const std::string &path : named_paths()) grant_named(path);
    if (!policy_.cwd.empty()) grant_folder_named(policy_.cwd);
    for (const std::string &path : policy_.read) show_named(path, false);
    for (const std::string &path : policy_.write) show_named(path, true);
    show_name_service();
    cover_own();
    mirror_folders();
    return finish();
  }

 private:
  static constexpr const char *shared_because =
      " is shared with other programs or contains paths that are hidden from servers; ";

  void add_home(const std::string &home) {
    const bool usable = !home.empty() && home != "/" && is_folder(home) && !in_closed_root(home);
    if (usable && !is_home(home)) homes_.push_back(home);
  }
  bool is_home(const std::string &path) const {
    return std::find(homes_.begin(), homes_.end(), path) != homes_.end();
  }
  bool is_in_home(const std::string &path) const {
    return std::any_of(homes_.begin(), homes_.end(),
                       [&](const std::string &home) { return is_within(path, home); });
  }
  // Returns true if the path is a home directory or contains one.
  bool holds_home(const std::string &path) const { return holds_any(path, homes_); }

  void put(Kind kind, const std::string &path) {
    ViewStep &step = steps_[path] = {};
    step.kind = kind;
    step.path = path;
  }
  void add_cover(const std::string &path) {
    put(is_folder(path) ? Kind::empty_folder : Kind::empty_file, path);
  }

  void show(const std::string &path, bool writable, const std::string &source = {}) {
    if (path.empty() || path == "/") return;
    const std::string &from = source.empty() ? path : source;
    put(Kind::bind, path);
    ViewStep &step = steps_[path];
    step.source = from;
    step.writable = writable;
    step.folder = is_folder(from);
  }

  // Returns the real path, using the look-up cache if there is one. Must be used only for paths
  // that are looked up for every view.
  std::string real_place(const std::string &path) const {
    return request_.places == nullptr ? real_path(path) : request_.places->real(path);
  }

  void cover(const std::string &path) {
    const std::string real = real_place(path);
    if (real.empty() || holds_home(real)) return;
    add_cover(real);
  }

  // Hides a path. It stays hidden even if it is created or replaced later; see mirror_folders().
  void hide(const std::string &path) {
    const std::string place = place_of(path);
    if (place.empty() || holds_home(place)) return;
    hidden_.insert(place);
    const std::string real = real_place(path);
    if (!real.empty() && real != place) hidden_.insert(real);
    cover(path);
  }

  // Resolves the symbolic links in a path's parent folders. The path itself need not exist.
  std::string place_of(const std::string &path) const {
    std::string above = parent_of(path), rest(base_of(path));
    for (; above != "/"; above = parent_of(above)) {
      if (const std::string real = real_place(above); !real.empty()) return joined(real, rest);
      rest.insert(0, "/").insert(0, base_of(above));
    }
    return "/" + rest;
  }

  // Returns the step that currently determines whether this path is visible, which is the step for
  // the path itself or for its nearest parent. Returns null if there is none.
  const ViewStep *nearest(std::string at) const {
    for (;; at = parent_of(at)) {
      if (const auto found = steps_.find(at); found != steps_.end()) return &found->second;
      if (at == "/") return nullptr;
    }
  }

  // Returns true if an earlier step hides this path.
  bool is_covered(const std::string &path) const {
    const ViewStep *step = nearest(path);
    if (step == nullptr || step->kind == Kind::mirror || step->kind == Kind::link) return false;
    return step->kind != Kind::bind || step->instead;
  }

  // ---- covers --------------------------------------------------------------------------------

  // Hides the secrets in a home directory. In `strict` mode, the whole directory is already hidden,
  // but the definition may grant a folder inside it, so its secrets are hidden anyway.
  void hide_at_home(const std::string &home) {
    const bool covered = policy_.mode == Mode::strict && is_covered(home);
    for (const std::string_view name : secrets_at_home()) hide(joined(home, name));
    if (!is_container_client(policy_)) {
      for (const std::string_view name : containers_at_home()) hide(joined(home, name));
    }
    if (!covered) put(Kind::mirror, home);
  }

  // Hides /run except for its symbolic links, which give access to nothing in it.
  void cover_run() {
    for (const char *folder : {"/run", "/var/run"}) cover(folder);
    for (ViewStep &link : links_in("/run")) steps_[link.path] = std::move(link);
  }

  void hide_services() {
    for (const std::string &path : services_hidden_from(policy_, request_)) {
      const std::string place = place_of(path);
      if (!is_closed(place) || place.starts_with("/run/")) hide(path);
    }
    if (policy_.mode == Mode::strict) return;
    for (const std::string &path : services_visible_to(policy_, request_)) {
      show(real_place(path), false);
    }
  }

  void hide_secrets_of_root() {
    if (request_.user != 0) return;
    for (const std::string_view path : secrets_of_root()) hide(std::string(path));
    hide_host_keys();
  }

  void hide_host_keys() {
    std::error_code error;
    for (const auto &entry : std::filesystem::directory_iterator("/etc/ssh", error)) {
      if (entry.path().string().ends_with("_key")) hide(entry.path().string());
    }
  }

  void cover_all_but_the_system() {
    std::error_code error;
    for (const auto &entry : std::filesystem::directory_iterator("/", error)) {
      const std::string path = entry.path().string();
      const std::string_view name = base_of(path);
      const bool known =
          std::find(std::begin(system_tops), std::end(system_tops), name) != std::end(system_tops);
      if (known || entry.is_symlink(error) || steps_.contains(path)) continue;
      add_cover(path);
    }
    for (const std::string_view path : secrets_of_root()) {
      if (is_covered(place_of(std::string(path)))) continue;
      if (request_.user == 0) {
        hide(std::string(path));
      } else {
        cover(std::string(path));
      }
    }
    hide_host_keys();
  }

  // Hides the gateway's own folders. This runs after the paths have been granted, so no granted
  // path can uncover them. Of the caches, only the part that belongs to this server remains
  // visible.
  void cover_own() {
    for (const std::string &path : request_.own) {
      const std::string place = normal_path(path);
      if (place.starts_with('/')) hide(place);
      const std::string real = real_path(path);
      if (real.empty() || holds_home(real)) continue;
      std::erase_if(steps_, [&](const auto &entry) {
        const bool inside = is_within(entry.first, real);
        if (inside && entry.second.kind == Kind::bind)
          ignored_.push_back(entry.first + " belongs to the gateway");
        return inside;
      });
      add_cover(real);
    }
  }

  // ---- paths that the server requires --------------------------------------------------------

  void add_caches() {
    if (request_.cache.empty() || home_.empty()) return;
    for (const Cache &cache : caches) {
      const std::string at = joined(home_, cache.at);
      const std::string real = real_place(at);
      // Do not replace a cache that the user has moved elsewhere.
      if ((real.empty() ? place_of(at) : real) != at) continue;
      add_cache(cache, at);
      placed_.push_back(at);
    }
  }

  void add_cache(const Cache &cache, const std::string &at) {
    const std::string own = joined(request_.cache, cache.own);
    if (::mkdir(own.c_str(), 0700) != 0 && !is_folder(own)) return;
    std::vector<std::string> kept;
    for (const std::string_view name : cache.kept) {
      if (name == "*") {
        std::error_code error;
        for (const auto &entry : std::filesystem::directory_iterator(at, error)) {
          if (kept.size() < most_kept && entry.is_directory(error))
            kept.push_back(entry.path().string());
        }
      } else if (!name.empty() && is_folder(joined(at, name))) {
        kept.push_back(joined(at, name));
      }
    }
    show(at, true, own);
    steps_[at].instead = true;
    if (policy_.mode == Mode::strict) return;
    for (const std::string &path : kept) {
      if (real_path(path) == path) show(path, false);
    }
  }

  void show_program() {
    const std::string found = normal_path(request_.program);
    for (const std::string &path : {found, real_path(found)}) {
      if (path.starts_with('/')) show_code(path);
    }
  }

  // Makes a program file and its package visible at the given path. If that path contains a
  // symbolic link, they are also made visible at their real location.
  void show_code(const std::string &file) {
    if (!is_covered(file)) return;
    const std::string root = code_root(file, homes_), real = real_path(root);
    if (real.empty() || holds_home(real) || is_closed(real)) {
      return show(file, false, real_path(file));
    }
    show(root, false, real);
  }

  // These files may be symbolic links into a hidden folder, so their targets are made visible.
  void show_name_service() {
    for (const char *path : {"/etc/resolv.conf", "/etc/hosts", "/etc/localtime"}) {
      const std::string real = real_place(path);
      if (!real.empty() && is_covered(real)) show(real, false);
    }
  }

  // ---- paths that the definition names --------------------------------------------------------

  std::vector<std::string> named_paths() const {
    std::vector<std::string> out;
    const auto add = [&](const std::string &text) {
      if (text.starts_with('/') && text.size() < PATH_MAX) out.push_back(normal_path(text));
    };
    for (const std::string &arg : policy_.args) {
      add(arg);
      if (const std::size_t at = arg.find("=/"); at != std::string::npos) add(arg.substr(at + 1));
    }
    // A configured variable such as HOME may name the home directory, but that must not grant
    // access to the whole directory.
    const auto end = homes_.begin() + static_cast<std::ptrdiff_t>(gateways_homes_);
    for (const std::string &value : policy_.env_values) {
      if (!value.starts_with('/') || std::find(homes_.begin(), end, real_path(value)) == end) {
        add(value);
      }
    }
    return out;
  }

  static bool in_closed_root(const std::string &path) {
    return std::any_of(std::begin(closed_roots), std::end(closed_roots),
                       [&](std::string_view root) { return is_within(path, root); });
  }

  static bool is_closed(const std::string &path) {
    return in_closed_root(path) ||
           std::find(std::begin(closed_tops), std::end(closed_tops), path) != std::end(closed_tops);
  }

  // Returns false if the server can write to the folder that contains the named path. In that case,
  // the server could replace the path with a link to a file that the user did not name.
  bool is_trusted(const std::string &named, const std::string &real) const {
    if (named == real) return true;
    for (const auto &[at, step] : steps_) {
      const bool changeable = step.kind == Kind::bind && step.writable;
      if (changeable && named != at && is_within(named, at)) return false;
    }
    return true;
  }

  void grant_named(const std::string &named) {
    const std::string real = real_path(named);
    if (real.empty()) return grant_new_file(named);
    if (!is_trusted(named, real)) {
      ignored_.push_back(named + " is a symbolic link in a folder that the server can change");
    } else if (is_folder(real)) {
      grant_folder(real);
    } else if (is_code(real)) {
      show_code(named);
      show_code(real);
    } else if (is_closed(real)) {
      if (is_covered(real)) show(real, false);
    } else {
      grant_file(named, real);
    }
  }

  void grant_folder(const std::string &real) {
    if (is_closed(real)) {
      if (may_name_in_run(real) && is_covered(real)) show(real, false);
    } else if (is_home(real) || !holds_home(real)) {
      show(real, true);
    }
  }

  // Grants the file's folder if possible, because editors and databases create files next to the
  // named file and rename them over it.
  void grant_file(const std::string &named, const std::string &real) {
    const std::string folder = parent_of(real);
    if (is_trusted(parent_of(named), folder) && may_grant_around(folder)) return show(folder, true);
    show(real, true);
    const bool in_hidden =
        std::any_of(excluded_places().begin(), excluded_places().end(),
                    [&](const auto &at) { return is_within(real, at) && !is_shared(at); });
    if (in_hidden || is_closed(folder)) return;
    notes_.push_back("it can change the file " + real +
                     ", but not replace it or create files beside it: " + folder + shared_because +
                     "move the file to a separate folder if the server needs to do so");
  }

  // Grants the folder in which the server will create the file.
  void grant_new_file(const std::string &named) {
    const std::string folder = real_path(parent_of(named));
    if (folder.empty() || is_closed(folder)) return;
    if (is_trusted(parent_of(named), folder) && may_grant_around(folder)) return show(folder, true);
    ignored_.push_back(
        named + " does not exist, and its folder was not made accessible instead: " + folder +
        shared_because + "create the file, or name one in a separate folder");
  }

  // Returns true if a folder may be granted because the definition names a file in it. Such a
  // folder must not be shared by several programs, and must neither contain a hidden path nor be
  // inside one.
  bool may_grant_around(const std::string &folder) {
    if (is_closed(folder) || holds_home(folder)) return false;
    return std::none_of(excluded_places().begin(), excluded_places().end(),
                        [&](const std::string &at) {
                          return is_within(at, folder) || (is_within(folder, at) && !is_shared(at));
                        });
  }

  bool is_shared(const std::string &at) const {
    return std::any_of(homes_.begin(), homes_.end(), [&](const std::string &home) {
      const auto names = shared_at_home();
      return std::any_of(names.begin(), names.end(),
                         [&](std::string_view name) { return at == joined(home, name); });
    });
  }

  // Returns the paths hidden so far and the folders that several programs share. The gateway's own
  // files are not included: cover_own() hides them even in a granted folder.
  const std::set<std::string> &excluded_places() {
    if (!excluded_places_.empty()) return excluded_places_;
    excluded_places_ = hidden_;
    for (const std::string &home : homes_) {
      for (const std::string_view name : shared_at_home()) {
        excluded_places_.insert(joined(home, name));
        if (const std::string real = real_place(joined(home, name)); !real.empty()) {
          excluded_places_.insert(real);
        }
      }
    }
    return excluded_places_;
  }

  void grant_folder_named(const std::string &named) {
    const std::string real = real_path(named);
    if (real.empty() || !is_trusted(normal_path(named), real) || is_home(real)) return;
    if (is_folder(real)) grant_folder(real);
  }

  void show_named(const std::string &named, bool writable) {
    const std::string real = real_path(named);
    if (real.empty()) {
      ignored_.push_back(named + " does not exist");
    } else if (!is_trusted(normal_path(named), real)) {
      ignored_.push_back(named + " is a symbolic link in a folder that the server can change");
    } else {
      show(real, writable);
    }
  }

  // ---- mirrors -------------------------------------------------------------------------------

  // Mirrors every folder in a home directory that contains a hidden path. Outside home directories,
  // mirrors only the nearest parent of each hidden path. Folders that are hidden or granted as a
  // whole are not mirrored.
  void mirror_folders() {
    std::set<std::string> folders;
    const auto add_above = [&](const std::string &place) {
      const bool at_home = is_in_home(place);
      for (std::string at = parent_of(place); at != "/"; at = parent_of(at)) {
        if (at_home && folders.contains(at)) return;
        if (is_folder(at)) {
          folders.insert(at);
          if (!at_home || is_home(at)) return;
        }
      }
    };
    for (const std::string &place : hidden_) add_above(place);
    // If a cache does not exist, its mount target is created in a mirror, not in the real home
    // directory.
    for (const std::string &place : placed_) add_above(place);
    std::vector<std::string> mirrors;
    for (const std::string &folder : folders) {
      const ViewStep *step = nearest(folder);
      if (step != nullptr && step->kind != Kind::mirror) continue;
      if (step == nullptr || step->path != folder) put(Kind::mirror, folder);
      mirrors.push_back(folder);
    }
    for (const std::string &folder : mirrors) fill_mirror(folder);
  }

  void fill_mirror(const std::string &folder) {
    std::size_t count = 0, left_out = 0;
    std::error_code error;
    for (const auto &found : std::filesystem::directory_iterator(folder, error)) {
      const std::string path = found.path().string();
      if (hidden_.contains(path) || steps_.contains(path)) continue;
      if (++count > most_mirrored) {
        ++left_out;
        continue;
      }
      std::error_code gone;
      const bool link = found.is_symlink(gone);
      if (!link && found.is_socket(gone)) continue;  // a read-only mount can be connected to
      put(link ? Kind::link : Kind::entry, path);
      ViewStep &step = steps_[path];
      step.source = link ? std::filesystem::read_symlink(path, gone).string() : path;
      step.folder = !link && found.is_directory(gone);
    }
    if (left_out == 0) return;
    notes_.push_back(folder + " has more than " + std::to_string(most_mirrored) + " entries; " +
                     std::to_string(left_out) +
                     " are not visible to the server (add those that it needs to sandbox_paths)");
  }

  // ---- the result ----------------------------------------------------------------------------

  // Orders the steps so that each folder precedes its contents. As a result, secrets in a granted
  // folder stay hidden, and a path granted in a hidden folder is visible.
  ChildView finish() {
    ChildView view;
    view.ignored = std::move(ignored_);
    view.notes = std::move(notes_);
    std::map<std::string, std::size_t> places;  // step indexes in the view, by path
    for (auto &[path, step] : steps_) {
      std::size_t above_at = ViewStep::no_mirror;
      for (std::string at = path; at != "/" && above_at == ViewStep::no_mirror;) {
        at = parent_of(at);
        if (const auto found = places.find(at); found != places.end()) above_at = found->second;
      }
      ViewStep *above = above_at == ViewStep::no_mirror ? nullptr : &view.steps[above_at];
      const bool shown =
          above == nullptr || above->kind == Kind::bind || above->kind == Kind::entry;
      if (!shown) {
        if (step.kind == Kind::empty_folder || step.kind == Kind::empty_file) continue;
        step.make = true;
        if (above->kind == Kind::empty_folder) above->holds = true;
        if (step.kind == Kind::entry) step.mirror = above_at;
      }
      if (above != nullptr && above->instead && step.kind == Kind::bind) {
        make_place(above->source, path.substr(above->path.size()), step.folder);
      }
      places.emplace(path, view.steps.size());
      view.steps.push_back(std::move(step));
    }
    return view;
  }

  const ViewRequest &request_;
  const ChildPolicy &policy_;
  const std::string home_;          // the gateway's HOME, which contains the caches; may be empty
  std::vector<std::string> homes_;  // all home directories whose secrets are hidden
  // The first `gateways_homes_` elements of homes_ do not come from the server's definition.
  std::size_t gateways_homes_ = 0;
  std::set<std::string> excluded_places_;  // see excluded_places()
  std::map<std::string, ViewStep> steps_;  // sorted by path, so parents come first
  std::set<std::string> hidden_;           // hidden paths, which may not exist
  std::vector<std::string> placed_;        // mount targets of caches
  std::vector<std::string> ignored_, notes_;
};

}  // namespace

ChildView plan_view(const ViewRequest &request) {
  return Planner(request).plan();
}

}  // namespace bulkhead
