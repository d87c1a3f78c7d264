#include "sandbox/child_view.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <set>

#include "sandbox/folder_entries.hpp"
#include "sandbox/hidden_paths.hpp"
#include "sandbox/hidden_places.hpp"
#include "sandbox/home_folders.hpp"
#include "sandbox/kept_programs.hpp"
#include "sandbox/link_rule.hpp"
#include "sandbox/named_paths.hpp"
#include "sandbox/path_walk.hpp"
#include "sandbox/private_caches.hpp"
#include "sandbox/program_files.hpp"
#include "sandbox/services.hpp"
#include "sandbox/system_folders.hpp"
#include "sandbox/view_notes.hpp"
#include "sandbox/view_steps.hpp"

namespace bulkhead {
namespace {

using Kind = ViewStep::Kind;
using Mode = ChildPolicy::Mode;
using Named = NamedPath;

class Planner {
 public:
  explicit Planner(const ViewRequest &request)
      : request_(request),
        policy_(*request.policy),
        home_(real_path(request.home)),
        hidden_(homes_, request.places, &hidden_budget_) {
    homes_.add(request.home, &hidden_budget_);
    for (const std::string &home : request.homes) homes_.add(home, &hidden_budget_);
    for (const std::string &folder : request_.changeable) certain_.add(folder);
    if (request_.distrust_links) certain_.distrust_all();
    if (request.program.starts_with('/')) hidden_.require(normal_path(request.program), certain_);
  }

  ChildView plan() {
    put(Kind::devices, "/dev");
    put(Kind::processes, "/proc");
    for (const std::string &folder : {std::string("/tmp"), hidden_.real("/var/tmp")}) {
      if (is_folder(folder)) put(Kind::scratch, folder);
    }
    if (policy_.mode == Mode::strict) {
      cover_all_but_the_system();
    } else {
      for (const char *folder : {"/run", "/var/run"}) cover(folder);
      for (ViewStep &link : links_in("/run")) steps_[link.path] = std::move(link);
      hide_secrets_of_root();
    }
    hide_services();
    for (const std::string &home : homes_.all()) hide_at_home(home);
    if (hide_in_system_folder(home_)) notes_.push_back(note_of_system_home(home_));
    for (const std::string &home : request_.homes) {
      hide_in_system_folder(real_path(home, &hidden_budget_));
    }
    gateways_walks_ = hidden_.walks().size();
    for (const std::string &path : request_.also_hidden) {
      if (!hidden_.is_required(path)) hide(path);
    }
    const std::vector<Named> named = named_paths(policy_, homes_, &named_budget_);
    find_changeable(named);
    add_servers_home();
    add_caches();
    show_program();
    for (const Named &path : named) grant(path);
    show_name_service();
    cover_own();
    keep_programs(request_.programs, homes_.mounts(), &steps_, &notes_, &hidden_budget_);
    if (refused_.empty()) refused_ = pin_parents(&steps_);
    if (refused_.empty() && !hidden_budget_.failed.empty())
      refused_ = unresolved(hidden_budget_.failed);
    if (refused_.empty()) mirror_folders();
    return finish();
  }

 private:
  void put(Kind kind, const std::string &path) {
    ViewStep &step = steps_[path] = {};
    step.kind = kind;
    step.path = path;
  }
  void add_cover(const std::string &path) {
    const bool folder = is_folder(path) || is_unreachable(path);
    put(folder ? Kind::empty_folder : Kind::empty_file, path);
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

  void cover(const std::string &path) {
    const std::string real = hidden_.real(path);
    if (real.empty() || homes_.are_within(real)) return;
    add_cover(real);
  }

  // Hides a path. It stays hidden even if it is created or replaced later; see mirror_folders().
  void hide(const std::string &path) {
    if (const std::string real = hidden_.add(path); !real.empty()) add_cover(real);
  }

  // Returns true if an earlier step hides this path.
  bool is_covered(const std::string &path) const {
    const ViewStep *step = nearest_step(steps_, path);
    if (step == nullptr || step->kind == Kind::mirror || step->kind == Kind::link) return false;
    return step->kind != Kind::bind || step->instead;
  }

  // ---- covers --------------------------------------------------------------------------------

  // Hides the secrets in a home directory. In `strict` mode, the whole directory is already hidden,
  // but the definition may grant a folder inside it, so its secrets are hidden anyway.
  void hide_at_home(const std::string &home) {
    const bool covered = policy_.mode == Mode::strict && is_covered(home);
    hide_secrets_at(home);
    if (!covered) put(Kind::mirror, home);
  }

  void hide_secrets_at(const std::string &home, bool existing = false) {
    const auto hide_all = [&](std::span<const std::string_view> names) {
      for (const std::string_view name : names) {
        if (!existing || exists(joined(home, name))) hide_everywhere(joined(home, name));
      }
    };
    hide_all(secrets_at_home());
    if (!is_container_client(policy_)) hide_all(containers_at_home());
  }

  // If a home directory is "/" or in a system folder, hides the secrets that exist in it. It is not
  // mirrored, so those that are created later are visible. Returns false for other directories.
  bool hide_in_system_folder(const std::string &home) {
    if ((home != "/" && !in_closed_root(home)) || !is_folder(home)) return false;
    hide_secrets_at(home, true);
    return true;
  }

  // Hides the secrets in the home directory that the definition's HOME names. The server may have
  // chosen where the path leads, so it must not make anything visible.
  void add_servers_home() {
    if (!policy_.home.starts_with('/') || policy_.home.size() >= PATH_MAX) return;
    const PathWalk walk = walk_path(policy_.home, &hidden_budget_);
    const std::string &end = walk.end;
    if (hide_in_system_folder(end)) {
      excluded_places_.clear();
      return notes_.push_back(note_of_system_home(policy_.home));
    }
    const bool rejected = possible_.rejected(walk) != nullptr;
    std::set<std::string> closed = hidden_.all();
    for (const std::string &path : request_.own) {
      closed.insert({normal_path(path), walk_path(normal_path(path), &hidden_budget_).end});
    }
    const bool overlaps = std::any_of(closed.begin(), closed.end(), [&](const std::string &at) {
      return is_within(end, at) || is_within(at, end);
    });
    const std::size_t known = homes_.all().size();
    if (!rejected && (homes_.is_home(end) || !overlaps)) {
      homes_.add_servers(policy_.home, end);
      for (std::size_t i = known; i < homes_.all().size(); ++i) hide_at_home(homes_.all()[i]);
    } else if (is_folder(end) && !homes_.are_within(end) && !is_closed(end)) {
      hide_secrets_at(end);
      notes_.push_back(note_of_home(policy_.home, rejected));
    }
    excluded_places_.clear();
  }

  void hide_everywhere(const std::string &secret) {
    hide(secret);
    for (const MountTable::Other &part : homes_.parts()) hide_in_part(part, secret);
  }

  // Hides a secret where a part of the home directory is mounted a second time.
  void hide_in_part(const MountTable::Other &part, const std::string &secret) {
    if (is_within(part.inside, secret)) return hide(part.at);
    if (!is_within(secret, part.inside)) return;
    hidden_.add_top(part.at);
    hide(part.at + secret.substr(part.inside.size()));
  }

  void hide_services() {
    for (const std::string &path : services_hidden_from(policy_, request_)) {
      const std::string place = hidden_.place_of(path);
      if (!is_closed(place) || place.starts_with("/run/")) hide(path);
    }
    if (policy_.mode == Mode::strict) return;
    for (const std::string &path : services_visible_to(policy_, request_)) {
      show(hidden_.real(path), false);
    }
  }

  void hide_secrets_of_root() {
    if (request_.user != 0) return;
    for (const std::string_view path : secrets_of_root()) hide(std::string(path));
    hide_host_keys();
  }

  void hide_host_keys() {
    // If the folder contains no key yet, this causes it to be mirrored.
    if (request_.user == 0) hide("/etc/ssh/ssh_host_ed25519_key");
    const bool complete = for_each_entry("/etc/ssh", [&](const auto &entry) {
      if (entry.path().string().ends_with("_key")) hide(entry.path().string());
    });
    if (!complete && request_.user == 0) hide("/etc/ssh");
  }

  void cover_all_but_the_system() {
    const bool complete = for_each_entry("/", [&](const auto &entry) {
      std::error_code gone;
      const std::string path = entry.path().string();
      const bool known = is_system_top(base_of(path));
      if (!known && !entry.is_symlink(gone) && !steps_.contains(path)) add_cover(path);
    });
    if (!complete) refused_ = "the entries of / could not be read, so not all of them are hidden";
    for (const std::string_view path : secrets_of_root()) {
      if (is_covered(hidden_.place_of(std::string(path)))) continue;
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
      const std::string real = real_path(path, &hidden_budget_);
      const PathWalk walk = walk_path(place, &hidden_budget_);
      if (real.empty()) keep_folder(parent_of(walk.end), place);
      for (const PathWalk::Link &link : walk.links) keep_folder(parent_of(link.at), place);
      if (real.empty() || homes_.of_gateway_are_within(real)) continue;
      cover_own(real);
      for (const MountTable::Other &other : homes_.mounts().others(real)) cover_own(other.at);
    }
  }

  void cover_own(const std::string &real) {
    std::erase_if(steps_, [&](const auto &entry) {
      const bool inside = is_within(entry.first, real);
      if (inside && entry.second.kind == Kind::bind)
        ignored_.push_back(entry.first + " belongs to the gateway");
      return inside;
    });
    if (!is_folder(real)) keep_from_replacements(real);
    add_cover(real);
  }

  // Keeps a file of the gateway hidden if another program replaces it, as editors do: mirrors the
  // file's folder. If exactly that folder is granted for writing, only adds a note.
  void keep_from_replacements(const std::string &file) {
    const std::string folder = parent_of(file);
    const ViewStep *step = nearest_step(steps_, folder);
    if (step == nullptr || step->kind != Kind::bind || step->instead) return;
    if (step->path != folder || !step->writable) return put(Kind::mirror, folder);
    notes_.push_back(note_of_replacements(folder, file));
  }

  // Makes a folder read-only if it is in a writable folder. If the gateway reads a file through a
  // link in the folder, or would read a file that does not exist yet, the server could otherwise
  // put a file of its own there.
  void keep_folder(std::string folder, const std::string &own) {
    while (!is_folder(folder)) folder = parent_of(folder);
    const ViewStep *step = nearest_step(steps_, folder);
    if (step == nullptr || step->kind != Kind::bind || !step->writable || step->instead) return;
    show(folder, false);
    notes_.push_back("it cannot change the folder " + folder +
                     ", because the gateway would read a file that it puts there as " + own +
                     "; move the server's files to a separate folder");
  }

  // ---- paths that the server requires --------------------------------------------------------

  void add_caches() {
    if (request_.cache.empty() || home_.empty()) return;
    for (const PrivateCache &cache : private_caches) {
      const std::string at = joined(home_, cache.at);
      const std::string real = hidden_.real(at);
      // Do not replace a cache that the user has moved elsewhere.
      if ((real.empty() ? hidden_.place_of(at) : real) != at) continue;
      add_cache(cache, at);
      placed_.push_back(at);
    }
  }

  void add_cache(const PrivateCache &cache, const std::string &at) {
    const std::string own = joined(request_.cache, cache.own);
    if (::mkdir(own.c_str(), 0700) != 0 && !is_folder(own)) return;
    const std::vector<std::string> kept = kept_folders(cache, at);
    show(at, true, own);
    steps_[at].instead = true;
    if (policy_.mode == Mode::strict) return;
    for (const std::string &path : kept) {
      if (real_path(path) == path) show(path, false);
    }
  }

  void show_program() {
    const std::string found = normal_path(request_.program);
    if (!found.starts_with('/')) return;
    const PathWalk walk = walk_path(found, &named_budget_);
    if (walk.given_up) ignored_.push_back(unresolved(found));
    if (!walk.exists) return;
    if (hidden_.are_reached(found, walk.end)) {
      ignored_.push_back(found + " is a symbolic link to a path that is hidden from servers");
    } else if (certain_.rejected(walk) == nullptr) {
      show_code(walk, true);
    } else if (is_covered(walk.end)) {
      // A server may have chosen the target, as in the `bin` folder of a Python environment. Only
      // an installation is made visible as a whole, not a project.
      const bool installed = base_of(parent_of(walk.end)) == "bin";
      if (installed) return show_package(walk.end, true);
      show(walk.end, false);
    }
  }

  // Makes a program file and its package visible, and also the package of a link to the file, as in
  // a Python environment. They are visible only at their real paths, where the hidden paths in them
  // are hidden. Other links of the walk are created as links.
  void show_code(const PathWalk &walk, bool certainly) {
    const auto last = std::find_if(walk.links.begin(), walk.links.end(),
                                   [](const PathWalk::Link &link) { return link.last; });
    if (last != walk.links.end()) show_package(last->at, certainly);
    show_package(walk.end, certainly);
    for (const PathWalk::Link &link : walk.links) {
      if (!is_covered(link.at) || nearest_step(steps_, link.at)->kind == Kind::bind) continue;
      put(Kind::link, link.at);
      steps_[link.at].source = link.target;
    }
  }

  // None of the parent components of `file` may be a link.
  void show_package(const std::string &file, bool certainly) {
    if (!is_covered(file)) return;
    const auto [folder, wanted] = folder_of_program(file, certainly, homes_, hidden_.all(),
                                                    certain_.outermost(parent_of(file)));
    std::error_code none;
    if (!folder.empty()) {
      show(folder, false);
    } else if (!std::filesystem::is_symlink(file, none)) {
      show(file, false);
    }
    if (wanted.empty()) return;
    notes_.push_back(note_of_program(wanted, folder.empty() ? file : folder));
  }

  // These files may be symbolic links into a hidden folder, so their targets are made visible.
  void show_name_service() {
    for (const char *path : {"/etc/resolv.conf", "/etc/hosts", "/etc/localtime"}) {
      const std::string real = hidden_.real(path);
      if (!real.empty() && is_covered(real)) show(real, false);
    }
  }

  // ---- paths that the definition names --------------------------------------------------------

  // Finds the folders that servers can change or could change earlier, so that no link out of them
  // is followed, regardless of the order in which the paths are named. If a named path is a link,
  // possible_ includes the link's folder: the link may have been created by a server that was
  // granted the folder when the path still was a file.
  void find_changeable(const std::vector<Named> &named) {
    for (const Named &name : named) {
      const std::string &end = name.walk.end;
      if (name.walk.given_up) continue;  // it is not granted
      if (name.as == Named::As::readable || hidden_.are_reached(name.path, end)) continue;
      if (name.walk.exists && is_folder(end)) {
        if (name.as == Named::As::writable || may_grant_folder(end)) certain_.add(end);
      } else if (name.as == Named::As::argument && name.kind == FileKind::data) {
        if (may_grant_around(parent_of(end))) certain_.add(parent_of(end));
      }
    }
    possible_ = certain_;
    for (const Named &name : named) {
      if (name.as != Named::As::argument) continue;
      for (const PathWalk::Link &link : name.walk.links) {
        if (link.last && may_grant_around(parent_of(link.at))) possible_.add(parent_of(link.at));
      }
    }
  }

  // Returns true if the links in a named path may be followed. Otherwise, the path is not granted,
  // and the reason is added to ignored_, unless the target is visible anyway.
  bool may_follow(const Named &name, bool code) {
    const PathWalk &walk = name.walk;
    if (walk.links.empty()) return true;
    const PathWalk::Link *link = (code ? certain_ : possible_).rejected(walk);
    const bool hidden = hidden_.are_reached(name.path, walk.end);
    if (link == nullptr && !hidden) {
      for (const PathWalk::Link &one : walk.links) named_links_.insert(one.at);
      return true;
    }
    // The target is visible anyway, and is never granted.
    if (in_closed_root(walk.end) && !is_covered(walk.end)) return false;
    ignored_.push_back(
        name.path + " leads to " + walk.end +
        (link != nullptr ? " through the symbolic link " + link->at +
                               ", which a server can create or change; if you created the link, "
                               "name its target instead"
                         : " through a symbolic link, and that path is hidden from servers or is a "
                           "home directory; if the server needs it, name the path itself"));
    return false;
  }

  // Returns true if the gateway may search a named folder, or the folders on the way to a named
  // path. Otherwise, the gateway could not find hidden paths there, so the path is not granted. The
  // reason is added to ignored_, except for system folders.
  bool may_search(const PathWalk &walk) {
    const bool folder = walk.exists && is_folder(walk.end);
    const std::string &closed = folder ? walk.end : walk.closed;
    if (closed.empty() || (folder && is_searchable(closed))) return true;
    if (is_closed(closed)) return false;
    ignored_.push_back("the gateway may not search the folder " + closed +
                       ", so it cannot find credentials in it; run chmod u+rwx " + closed);
    return false;
  }

  void grant(const Named &name) {
    const std::string &real = name.walk.end;
    const bool found = name.walk.exists;
    const bool code = name.kind != FileKind::data;
    if (name.walk.given_up) return ignored_.push_back(unresolved(name.path));
    if (name.as == Named::As::folder && (!found || homes_.is_home(real) || !is_folder(real)))
      return;
    if (!may_follow(name, code) || !may_search(name.walk)) return;
    switch (name.as) {
      case Named::As::argument:
        return found ? grant_argument(name) : grant_new_file(name.path, real);
      case Named::As::folder:
        return grant_folder(real);
      case Named::As::readable:
      case Named::As::writable:
        if (!found) return ignored_.push_back(name.path + " does not exist");
        return show(real, name.as == Named::As::writable);
    }
  }

  void grant_argument(const Named &name) {
    const std::string &real = name.walk.end;
    if (is_folder(real)) {
      grant_folder(real);
    } else if (name.kind != FileKind::data) {
      show_code(name.walk, name.kind == FileKind::script);
    } else if (is_closed(real)) {
      if (is_covered(real)) show(real, false);
    } else {
      grant_file(real);
    }
  }

  bool may_grant_folder(const std::string &real) const {
    return !is_closed(real) && (homes_.is_home(real) || !homes_.are_within(real));
  }

  void grant_folder(const std::string &real) {
    if (may_grant_folder(real)) {
      show(real, true);
    } else if (is_closed(real) && may_name_in_run(real) && is_covered(real)) {
      show(real, false);
    }
  }

  // Grants the file's folder if possible, because editors and databases create files next to the
  // named file and rename them over it.
  void grant_file(const std::string &real) {
    const std::string folder = parent_of(real);
    if (may_grant_around(folder)) return show(folder, true);
    show(real, true);
    const bool in_hidden =
        std::any_of(excluded_places().begin(), excluded_places().end(),
                    [&](const auto &at) { return is_within(real, at) && !hidden_.is_shared(at); });
    if (in_hidden || is_closed(folder)) return;
    notes_.push_back("it can change the file " + real +
                     ", but not replace it or create files beside it: " + folder + shared_because +
                     "move the file to a separate folder if the server needs to do so");
  }

  // Grants the folder in which the server will create the file.
  void grant_new_file(const std::string &named, const std::string &real) {
    const std::string folder = parent_of(real);
    if (!is_folder(folder) || is_closed(folder)) return;
    if (may_grant_around(folder)) return show(folder, true);
    ignored_.push_back(
        named + " does not exist, and its folder was not made accessible instead: " + folder +
        shared_because + "create the file, or name one in a separate folder");
  }

  // Returns true if a folder may be granted because the definition names a file in it. Such a
  // folder must not be shared by several programs, and must neither contain a hidden path nor be
  // inside one.
  bool may_grant_around(const std::string &folder) {
    if (is_closed(folder) || homes_.are_within(folder)) return false;
    return std::none_of(
        excluded_places().begin(), excluded_places().end(), [&](const std::string &at) {
          return is_within(at, folder) || (is_within(folder, at) && !hidden_.is_shared(at));
        });
  }

  // The gateway's own files are not included: cover_own() hides them even in a granted folder.
  const std::set<std::string> &excluded_places() {
    if (excluded_places_.empty()) excluded_places_ = hidden_.all_and_shared(homes_.all());
    return excluded_places_;
  }

  // ---- mirrors -------------------------------------------------------------------------------

  // Folders that are hidden or granted as a whole are not mirrored. If a cache does not exist, its
  // mount target is created in a mirror, not in the real home directory.
  void mirror_folders() {
    std::vector<std::string> tops = homes_.all();
    for (const std::string &folder : hidden_.tops()) {
      if (!homes_.contain(folder)) tops.push_back(folder);
    }
    std::set<std::string> places = hidden_.all();
    places.insert(placed_.begin(), placed_.end());
    const std::set<std::string> folders = folders_to_mirror(tops, places);
    std::vector<std::string> mirrors;
    for (const std::string &folder : folders) {
      const ViewStep *step = nearest_step(steps_, folder);
      if (step != nullptr && step->kind != Kind::mirror) continue;
      if (step == nullptr || step->path != folder) put(Kind::mirror, folder);
      mirrors.push_back(folder);
    }
    for (const std::string &folder : mirrors) fill_mirror(folder);
  }

  void fill_mirror(const std::string &folder) {
    const std::size_t left_out = add_entries(folder, hidden_.all(), named_links_, &steps_);
    if (left_out == 0) return;
    notes_.push_back(note_of_entries(folder, most_mirrored, left_out));
  }

  // ---- the result ----------------------------------------------------------------------------

  ChildView finish() {
    ChildView view;
    view.ignored = std::move(ignored_);
    view.notes = std::move(notes_);
    view.refused = std::move(refused_);
    const auto add_if_in_scratch = [&](const std::string &place, const std::string &seen_at) {
      const ViewStep *step = nearest_step(steps_, seen_at);
      if (step != nullptr && step->kind == Kind::scratch) view.in_scratch.push_back(place);
    };
    for (const std::string &place : hidden_.all()) add_if_in_scratch(place, parent_of(place));
    for (const std::string &home : homes_.all()) add_if_in_scratch(home, home);
    for (std::size_t i = 0; i < gateways_walks_; ++i) {
      const PathWalk &walk = hidden_.walks()[i];
      if (!hidden_.all().contains(walk.end)) continue;
      for (const PathWalk::Link &link : walk.links) {
        if (certain_.can_change(walk, link)) view.keep_hidden.push_back(walk.end);
      }
    }
    order_steps(&steps_, &view);
    return view;
  }

  const ViewRequest &request_;
  const ChildPolicy &policy_;
  const std::string home_;  // the gateway's HOME, which contains the caches; may be empty
  HomeFolders homes_;
  // The first `gateways_walks_` of hidden_.walks() do not come from the server's definition.
  std::size_t gateways_walks_ = 0;
  WalkBudget hidden_budget_, named_budget_;  // for paths to hide, and for named paths
  // The folders that servers can change. `possible_` also contains the folders of named paths that
  // are links; see find_changeable().
  LinkRule certain_, possible_;
  std::set<std::string> excluded_places_;  // see excluded_places()
  ViewSteps steps_;
  HiddenPaths hidden_;
  std::set<std::string> named_links_;  // links that lead to granted paths
  std::vector<std::string> placed_;    // mount targets of caches
  std::vector<std::string> ignored_, notes_;
  std::string refused_;
};

}  // namespace

ChildView plan_view(const ViewRequest &request) {
  return Planner(request).plan();
}

}  // namespace bulkhead
