#include "builtin-files/snapshots/revert.hpp"

#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "builtin-files/remove.hpp"
#include "builtin-files/replacement.hpp"
#include "builtin-files/snapshots/compare.hpp"

namespace builtin_files {
namespace {

class Reverter {
 public:
  Reverter(const Call &call, SnapshotStore *store, const Manifest &snapshot, bool many)
      : call_(call),
        store_(*store),
        workspace_(store->workspace()),
        from_(" (from " + checkpoint_name(snapshot.head.slot) + ")"),
        many_(many),
        compare_(call, store->workspace()) {}

  void restore(const Entry &kept, const Entry *live) {
    if (must_end()) return;
    if (live != nullptr && live->kind == kept.kind && compare_.same(*live, kept)) {
      ++out_.unchanged;
      return;
    }
    if (kept.kind == Kind::file && !kept.stored) {
      if (many_) {
        ++out_.skipped;
        return;
      }
      return fail("the snapshot does not contain the content of " + shown(kept.path) +
                  ": the file was too large or not readable");
    }
    const Place place = workspace_.place(kept.path, true, Links::refuse);
    if (!place.problem.empty()) return fail(place.problem);
    const bool done = kept.kind == Kind::folder ? put_folder(kept, place)
                      : kept.kind == Kind::link ? put_link(kept, place)
                                                : put_file(kept, place);
    if (!done) return;
    ++out_.restored;
    if (kept.kind != Kind::folder) {
      call_.note("restored", kept.path + from_, kept.signature.size);
    }
  }

  // Removes a path that is not in the snapshot. If it is a folder, the caller has already removed
  // its contents.
  void remove(const Entry &live) {
    if (must_end()) return;
    const Place place = workspace_.place(live.path, false, Links::refuse);
    if (!place.folder.valid()) return;
    const bool folder = live.kind == Kind::folder;
    const int flags = folder ? AT_REMOVEDIR : 0;
    if (::unlinkat(place.folder.get(), place.name.c_str(), flags) == 0) {
      ++out_.deleted;
      if (!folder) call_.note("deleted", live.path + from_, live.signature.size);
    } else if (errno != ENOENT && !folder) {
      fail(shown(live.path) + " cannot be removed: " + bh::error_name(errno));
    }
  }

  const Reverted &result() const { return out_; }

 private:
  bool put_file(const Entry &kept, const Place &place) {
    std::string problem;
    Replacement file;
    if (many_) file.sync_later();
    const auto stop = [this] { return call_.must_stop(); };
    if (!file.begin(place, &problem) ||
        !store_.objects().copy_to(kept.hash, file.fd(), stop, &problem)) {
      fail(shown(kept.path) + ": " + problem);
      return false;
    }
    // Restores the owner. Only root can do this; otherwise, the file belongs to the gateway's user.
    struct stat s{};
    const bool is_ours =
        ::fstat(file.fd(), &s) == 0 && s.st_uid == kept.uid && s.st_gid == kept.gid;
    if (!is_ours && ::fchown(file.fd(), kept.uid, kept.gid) != 0) errno = 0;
    if (file.commit(kept.mode, Over::anything, &problem)) return true;
    fail(problem);
    return false;
  }

  bool put_link(const Entry &kept, const Place &place) {
    const std::string temporary = temporary_name(place.name);
    ::unlinkat(place.folder.get(), temporary.c_str(), 0);
    return finish(kept, place,
                  ::symlinkat(kept.target.c_str(), place.folder.get(), temporary.c_str()) == 0);
  }

  bool put_folder(const Entry &kept, const Place &place) {
    struct stat s{};
    const bool there =
        ::fstatat(place.folder.get(), place.name.c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there || !S_ISDIR(s.st_mode)) {
      const std::string temporary = temporary_name(place.name);
      remove_tree(place.folder.get(), temporary, [] { return false; });
      if (!finish(kept, place, ::mkdirat(place.folder.get(), temporary.c_str(), 0700) == 0)) {
        return false;
      }
    }
    const Fd fd = Workspace::open_below(place.folder.get(), place.name.c_str(),
                                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    // The folder must be writable until its contents are restored. close_folders() sets the final
    // mode.
    return fd.valid() && ::fchmod(fd.get(), kept_mode(kept.mode) | 0700) == 0;
  }

  // Renames the temporary entry to its final name. `made` is false if the temporary entry could not
  // be created.
  bool finish(const Entry &kept, const Place &place, bool made) {
    const std::string temporary = temporary_name(place.name);
    if (made && put_in_place(place.folder.get(), temporary, place.name, Over::anything)) {
      if (!many_) ::fsync(place.folder.get());
      return true;
    }
    fail(shown(kept.path) + " cannot be restored: " + bh::error_name(errno));
    ::unlinkat(place.folder.get(), temporary.c_str(), 0);
    return false;
  }

  bool must_end() {
    if (out_.problem.empty() && call_.must_stop()) {
      fail("the call was cancelled or timed out");
    }
    return !out_.problem.empty();
  }
  void fail(std::string problem) { out_.problem = std::move(problem); }

  const Call &call_;
  SnapshotStore &store_;
  const Workspace &workspace_;
  const std::string from_;
  const bool many_;
  LiveCompare compare_;
  Reverted out_;
};

// Returns the snapshot entries at or below `path`.
std::vector<const Entry *> wanted_of(const Manifest &snapshot, const std::string &path) {
  std::vector<const Entry *> out;
  for (const Entry &e : snapshot.entries) {
    if (is_within(e.path, path)) out.push_back(&e);
  }
  return out;
}

// Sets the final modes of folders after their contents have been restored. put_folder() has already
// set the modes of folders whose owner has all permissions.
void close_folders(const Workspace &workspace, const std::vector<const Entry *> &wanted) {
  for (auto e = wanted.rbegin(); e != wanted.rend(); ++e) {
    if ((*e)->kind != Kind::folder || ((*e)->mode & 0700) == 0700) continue;
    const Opened opened = workspace.open((*e)->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (opened.fd.valid()) ::fchmod(opened.fd.get(), kept_mode((*e)->mode));
  }
}

void sync(const Workspace &workspace) {
  const Opened root = workspace.open(".", O_RDONLY | O_DIRECTORY);
  if (root.fd.valid()) ::syncfs(root.fd.get());
}

}  // namespace

Reverted revert(const Call &call, SnapshotStore *store, const Manifest &snapshot,
                const std::string &path) {
  const Workspace &workspace = store->workspace();
  const std::vector<const Entry *> wanted = wanted_of(snapshot, path);
  Scan now = path == "." ? scan(call, workspace, path) : scan_one(workspace, path);
  const bool is_folder =
      path == "." || (!now.entries.empty() && now.entries.front().kind == Kind::folder);
  if (is_folder && path != ".") now = scan(call, workspace, path);
  if (!now.problem.empty()) return {.problem = now.problem};
  const bool many = wanted.size() > 1 || now.entries.size() > 1;
  Reverter reverter(call, store, snapshot, many);
  call.next_phase();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (many) call.report(static_cast<double>(i), static_cast<double>(wanted.size()));
    reverter.restore(*wanted[i], find_entry(now.entries, wanted[i]->path));
  }
  call.next_phase();
  for (auto live = now.entries.rbegin(); live != now.entries.rend(); ++live) {
    if (many) call.report(static_cast<double>(live - now.entries.rbegin()), 0);
    if (find_entry(snapshot.entries, live->path) == nullptr) reverter.remove(*live);
  }
  close_folders(workspace, wanted);
  if (many) sync(workspace);
  return reverter.result();
}

}  // namespace builtin_files
