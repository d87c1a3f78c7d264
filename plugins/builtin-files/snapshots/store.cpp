#include "builtin-files/snapshots/store.hpp"

#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <memory>

namespace builtin_files {
namespace {

constexpr std::size_t max_manifest_bytes = 1u << 30;
// Interval between attempts to take the lock.
constexpr auto between_looks = std::chrono::milliseconds(20);

std::string read_file(int folder, const std::string &name, std::size_t max_bytes) {
  const Fd fd = Workspace::open_below(folder, name.c_str(), O_RDONLY | O_NOFOLLOW);
  struct stat s{};
  if (!fd.valid() || ::fstat(fd.get(), &s) != 0 || !S_ISREG(s.st_mode)) return {};
  std::string bytes(std::min(static_cast<std::size_t>(s.st_size), max_bytes), '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t n = ::read(fd.get(), bytes.data() + size, bytes.size() - size);
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  bytes.resize(size);
  return bytes;
}

bool real_folder(const std::string &path, std::string *out) {
  const std::unique_ptr<char, decltype(&::free)> real(::realpath(path.c_str(), nullptr), ::free);
  if (real) *out = real.get();
  return real != nullptr;
}

bool nested(const std::string &a, const std::string &b) {
  return a == "/" || b == "/" || is_within(a, b) || is_within(b, a);
}

std::uint64_t file_size(int folder, const std::string &name) {
  struct stat s{};
  if (::fstatat(folder, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return static_cast<std::uint64_t>(s.st_size);
}

Place place_in(const Fd &folder, const std::string &name) {
  return {Fd(::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0)), name, {}};
}

bool same_content(const Entry &live, const Entry &kept) {
  return kept.kind == Kind::file && kept.stored && kept.settled && live.signature == kept.signature;
}

// Copies the hashes of stored entries to live entries with the same path and unchanged content.
void reuse_hashes(Entries *live, const Entries &kept) {
  auto k = kept.begin();
  for (Entry &e : *live) {
    while (k != kept.end() && path_less(k->path, e.path)) ++k;
    if (k == kept.end()) return;
    if (e.kind != Kind::file || k->path != e.path || !same_content(e, *k)) continue;
    e.hash = k->hash;
    e.stored = true;
  }
}

// Merges two sorted entry lists. For each path, the newer entry is kept. An older entry is dropped
// if it is below a path that is not a folder in the merged list.
Entries merged(Entries older, Entries newer) {
  Entries all;
  auto o = older.begin();
  for (Entry &n : newer) {
    for (; o != older.end() && path_less(o->path, n.path); ++o) all.push_back(std::move(*o));
    if (o != older.end() && o->path == n.path) ++o;
    all.push_back(std::move(n));
  }
  all.insert(all.end(), std::make_move_iterator(o), std::make_move_iterator(older.end()));
  Entries out;
  std::string no_folder;  // a path that is not a folder; entries below it are dropped
  for (Entry &e : all) {
    if (!no_folder.empty() && is_within(e.path, no_folder)) continue;
    no_folder = e.kind == Kind::folder ? std::string() : e.path;
    out.push_back(std::move(e));
  }
  return out;
}

}  // namespace

std::string checkpoint_name(unsigned slot) {
  return "cp-" + std::to_string(slot);
}

std::optional<unsigned> checkpoint_slot(std::string_view name) {
  unsigned slot = 0;
  if (!name.starts_with("cp-")) return std::nullopt;
  const char *end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + 3, end, slot);
  if (error != std::errc() || at != end || slot >= all_slots) return std::nullopt;
  return checkpoint_name(slot) == name ? std::optional(slot) : std::nullopt;
}

SnapshotStore::SnapshotStore(const Workspace &workspace, const SnapshotConfig &config, Links links)
    : workspace_(workspace), config_(config), links_(links) {}

bool SnapshotStore::open(std::string *problem) {
  std::string real;
  if (!real_folder(config_.path, &real) || nested(real, workspace_.root())) {
    *problem =
        real.empty()
            ? "the snapshot folder " + shown(config_.path) + " does not exist or is not accessible"
            : "the snapshot folder " + shown(config_.path) + " and the workspace \"" +
                  workspace_.name() + "\" must not contain each other";
    return false;
  }
  const Fd above = Workspace::open_named(config_.path, O_RDONLY | O_DIRECTORY, links_);
  const std::string &name = workspace_.name();
  const bool made =
      above.valid() && (::mkdirat(above.get(), name.c_str(), 0700) == 0 || errno == EEXIST);
  if (made) {
    folder_ = Workspace::open_below(above.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  }
  if (folder_.valid()) return objects_.open(folder_.get(), problem);
  *problem = "the snapshot folder " + shown(config_.path) +
             " cannot be used: " + bh::error_name(errno) +
             "; it must exist and be writable by this user";
  return false;
}

std::unique_lock<std::mutex> SnapshotStore::lock(const Call &call, std::string *problem) {
  std::unique_lock<std::mutex> held(mutex_, std::defer_lock);
  // Polls the mutex, because a call that is blocked on it could not be cancelled.
  while (!held.try_lock()) {
    if (call.must_stop()) {
      *problem = "the call was cancelled or timed out while another call was using the snapshots";
      return {};
    }
    const timespec pause{0, std::chrono::nanoseconds(between_looks).count()};
    ::nanosleep(&pause, nullptr);
  }
  return held;
}

std::vector<Head> SnapshotStore::heads() const {
  std::vector<Head> out;
  for (unsigned slot = 0; slot < all_slots; ++slot) {
    auto head = decode_head(read_file(folder_.get(), checkpoint_name(slot), max_head_bytes));
    if (!head) continue;
    head->slot = slot;
    out.push_back(std::move(*head));
  }
  // Skips the sources of compacted snapshots. They still exist if a process was killed before it
  // removed them.
  std::vector<std::uint64_t> gone;
  for (const Head &h : out) gone.insert(gone.end(), h.replaces.begin(), h.replaces.end());
  std::erase_if(out, [&](const Head &h) {
    return std::find(gone.begin(), gone.end(), h.sequence) != gone.end();
  });
  std::sort(out.begin(), out.end(),
            [](const Head &a, const Head &b) { return a.sequence > b.sequence; });
  return out;
}

std::optional<Manifest> SnapshotStore::load(unsigned slot) const {
  auto out = decode(read_file(folder_.get(), checkpoint_name(slot), max_manifest_bytes));
  if (out) out->head.slot = slot;
  return out;
}

// Takes the exclusive file lock and removes leftovers of killed processes and of failed changes.
// Must be called before any change. Has no effect if acquired_ is set.
bool SnapshotStore::acquire(std::string *problem) {
  if (acquired_) return true;
  lock_ = Workspace::open_below(folder_.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!lock_.valid() || ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    lock_ = Fd();
    *problem =
        "another process is using the snapshots of the workspace \"" + workspace_.name() + "\"";
    return false;
  }
  const std::vector<Head> there = heads();
  std::unordered_set<Hash, HashBytes> needed;
  used_ = 0;
  for (unsigned slot = 0; slot < all_slots; ++slot) {
    const std::string name = checkpoint_name(slot);
    const bool listed =
        std::any_of(there.begin(), there.end(), [&](const Head &h) { return h.slot == slot; });
    const auto manifest = listed ? load(slot) : std::nullopt;
    if (listed && !manifest) {
      *problem = "the snapshot " + name +
                 " is damaged; delete its file in the snapshot folder if it "
                 "is not needed";
      lock_ = Fd();
      return false;
    }
    // Removes leftover sources of compacted snapshots. Files without a valid head do not belong to
    // the store and are kept.
    if (!listed && decode_head(read_file(folder_.get(), name, max_head_bytes))) {
      ::unlinkat(folder_.get(), name.c_str(), 0);
    }
    if (!manifest) continue;
    used_ += file_size(folder_.get(), name);
    for (const Entry &e : manifest->entries) {
      if (e.stored) needed.insert(e.hash);
    }
  }
  used_ += objects_.sweep([&](const Hash &hash) { return needed.contains(hash); });
  acquired_ = true;
  return true;
}

std::optional<unsigned> SnapshotStore::free_slot(unsigned first, unsigned behind) const {
  for (unsigned slot = first; slot < behind; ++slot) {
    struct stat s{};
    if (::fstatat(folder_.get(), checkpoint_name(slot).c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) {
      return slot;
    }
  }
  return std::nullopt;
}

// ---- snapshot contents -----------------------------------------------------------------------

Outcome<Manifest> SnapshotStore::take(const Call &call) {
  Outcome<Manifest> out;
  Scan now = scan(call, workspace_, ".");
  if (!now.problem.empty()) return {{}, std::move(now.problem)};
  const std::vector<Head> there = heads();
  out.value.entries = std::move(now.entries);
  out.value.head.skipped = now.skipped;
  out.value.head.created_s = ::time(nullptr);
  out.value.head.sequence = there.empty() ? 1 : there.front().sequence + 1;
  if (!there.empty()) {
    if (const auto newest = load(there.front().slot)) {
      reuse_hashes(&out.value.entries, newest->entries);
    }
  }
  making_ = &out.value.entries;
  out.problem = add_contents(call, &out.value);
  making_ = nullptr;
  if (out.good()) objects_.sync(&out.problem);
  // After a failure, unused objects may remain. The next acquire() removes them.
  if (!out.good()) acquired_ = false;
  complete(&out.value);
  return out;
}

std::string SnapshotStore::add_contents(const Call &call, Manifest *manifest) {
  std::uint64_t to_do = 0;
  std::uint64_t done = 0;
  call.next_phase();
  for (const Entry &e : manifest->entries) to_do += e.kind == Kind::file && !e.stored;
  for (Entry &e : manifest->entries) {
    if (e.kind != Kind::file || e.stored) continue;
    if (call.must_stop()) return "the call was cancelled or timed out; no snapshot was taken";
    call.report(static_cast<double>(done++), static_cast<double>(to_do));
    if (std::string problem = add_content(call, &e); !problem.empty()) return problem;
    if (!e.stored) ++manifest->head.skipped;
  }
  return {};
}

// Stores the content of a file. If the file is too large or unreadable, returns success without
// setting `stored`.
std::string SnapshotStore::add_content(const Call &call, Entry *entry) {
  if (entry->signature.size > config_.max_file_bytes) return {};
  if (!make_room(entry->signature.size)) {
    return "the snapshots of this workspace would exceed max_bytes (" +
           std::to_string(config_.max_bytes) +
           " bytes, set in the profile), so no snapshot was taken; delete or compact some "
           "snapshots";
  }
  const Place place = workspace_.place(entry->path, false, Links::refuse);
  if (!place.folder.valid()) return {};
  const Fd fd =
      Workspace::open_below(place.folder.get(), place.name.c_str(), O_RDONLY | O_NOFOLLOW);
  struct stat before{};
  if (!fd.valid() || ::fstat(fd.get(), &before) != 0 || !S_ISREG(before.st_mode)) return {};
  const auto stop = [&] { return call.must_stop(); };
  Objects::Put put = objects_.put(fd.get(), config_.max_file_bytes, stop);
  if (!put.problem.empty()) return shown(entry->path) + ": " + put.problem;
  used_ += put.added;
  struct stat after{};
  entry->signature = signature_of(before);
  // If the file changed while it was read, the entry is not marked as settled, so the next snapshot
  // reads the file again.
  entry->settled =
      entry->settled && ::fstat(fd.get(), &after) == 0 && signature_of(after) == entry->signature;
  entry->hash = put.hash;
  entry->stored = true;
  return {};
}

// Removes automatic snapshots, oldest first, until there is room for another `bytes` bytes. Keeps
// the newest snapshot, because the next snapshot reuses its hashes. Returns false if there is not
// enough room.
bool SnapshotStore::make_room(std::uint64_t bytes) {
  while (used_ + bytes > config_.max_bytes) {
    const std::vector<Head> there = heads();
    const auto oldest =
        std::find_if(there.rbegin(), there.rend(), [](const Head &h) { return !h.manual; });
    if (oldest == there.rend() || oldest->slot == there.front().slot) return false;
    forget(oldest->slot);
  }
  return true;
}

// ---- snapshot files --------------------------------------------------------------------------

std::string SnapshotStore::commit(const Manifest &manifest, unsigned slot, Over over) {
  const std::string bytes = encode(manifest);
  making_ = &manifest.entries;
  const bool has_room = make_room(bytes.size());
  making_ = nullptr;
  if (!has_room) return "the snapshots would exceed max_bytes";
  const Place place = place_in(folder_, checkpoint_name(slot));
  const std::uint64_t before = file_size(folder_.get(), place.name);
  std::string problem;
  Replacement file;
  if (!file.begin(place, &problem) || !file.write(bytes, &problem) ||
      !file.commit(0600, over, &problem)) {
    return problem;
  }
  used_ += bytes.size() - before;
  return {};
}

// Removes a snapshot and the objects that only this snapshot uses.
void SnapshotStore::forget(unsigned slot) {
  const auto manifest = load(slot);
  const std::string name = checkpoint_name(slot);
  used_ -= std::min(used_, file_size(folder_.get(), name));
  if (::unlinkat(folder_.get(), name.c_str(), 0) != 0 || !manifest) return;
  collect(manifest->entries);
}

void SnapshotStore::collect(const Entries &candidates) {
  std::unordered_set<Hash, HashBytes> unneeded;
  for (const Entry &e : candidates) {
    if (e.stored) unneeded.insert(e.hash);
  }
  const auto need = [&](const Entries &entries) {
    for (const Entry &e : entries) {
      if (e.stored) unneeded.erase(e.hash);
    }
  };
  if (making_ != nullptr) need(*making_);
  for (const Head &head : heads()) {
    if (unneeded.empty()) return;
    const auto other = load(head.slot);
    if (!other) return;  // without the manifest, it is unknown which objects are needed
    need(other->entries);
  }
  for (const Hash &hash : unneeded) used_ -= std::min(used_, objects_.remove(hash));
}

// ---- tool operations -------------------------------------------------------------------------

Outcome<Head> SnapshotStore::create(const Call &call, const std::string &name) {
  std::string problem;
  if (!acquire(&problem)) return {{}, problem};
  const std::string full = "all " + std::to_string(manual_slots) +
                           " manual snapshot slots are in use; delete or compact some snapshots";
  const auto slot = free_slot(auto_slots, all_slots);
  if (!slot) return {{}, full};
  Outcome<Manifest> taken = take(call);
  if (!taken.good()) return {{}, taken.problem};
  taken.value.head.manual = true;
  taken.value.head.name = name;
  taken.value.head.slot = *slot;
  problem = commit(taken.value, *slot, Over::nothing);
  return {taken.value.head, problem};
}

Outcome<Head> SnapshotStore::create_automatic(const Call &call) {
  std::string problem;
  if (!acquire(&problem)) return {{}, problem};
  Outcome<Manifest> taken = take(call);
  if (!taken.good()) return {{}, taken.problem};
  const std::vector<Head> there = heads();
  Head none;
  none.slot = all_slots;
  if (!there.empty() && there.front().hash == taken.value.head.hash) return {none, {}};
  auto slot = free_slot(0, auto_slots);
  std::optional<Manifest> replaced;
  if (!slot) {
    const auto oldest =
        std::find_if(there.rbegin(), there.rend(), [](const Head &h) { return !h.manual; });
    if (oldest == there.rend()) return {none, "no automatic snapshot can be replaced"};
    slot = oldest->slot;
    replaced = load(*slot);
  }
  taken.value.head.slot = *slot;
  problem = commit(taken.value, *slot, Over::files);
  if (problem.empty() && replaced) collect(replaced->entries);
  return {taken.value.head, problem};
}

std::string SnapshotStore::remove(const Call &, unsigned slot) {
  std::string problem;
  if (!acquire(&problem)) return problem;
  const std::vector<Head> there = heads();
  const auto at =
      std::find_if(there.begin(), there.end(), [&](const Head &h) { return h.slot == slot; });
  const std::string name = checkpoint_name(slot);
  if (at == there.end()) return "there is no snapshot " + name + "; see snapshots_list";
  if (!at->manual) return name + " is an automatic snapshot, which cannot be deleted";
  forget(slot);
  return {};
}

Outcome<SnapshotStore::Compacted> SnapshotStore::compact(const Call &call,
                                                         std::vector<unsigned> slots,
                                                         const std::string &name) {
  Outcome<Compacted> out;
  if (!acquire(&out.problem)) return out;
  const std::vector<Head> there = heads();
  Manifest made;
  made.head.manual = true;
  made.head.name = name;
  made.head.created_s = ::time(nullptr);
  for (auto head = there.rbegin(); head != there.rend(); ++head) {  // oldest first
    if (std::find(slots.begin(), slots.end(), head->slot) == slots.end()) continue;
    if (call.must_stop()) return {{}, "the call was cancelled or timed out; nothing was changed"};
    auto source = load(head->slot);
    if (!source) return {{}, "the snapshot " + checkpoint_name(head->slot) + " is damaged"};
    made.entries = merged(std::move(made.entries), std::move(source->entries));
    made.head.skipped = source->head.skipped;
    made.head.replaces.push_back(head->sequence);
    out.value.sources.push_back(head->slot);
  }
  for (const unsigned slot : slots) {
    const auto &found = out.value.sources;
    if (std::find(found.begin(), found.end(), slot) != found.end()) continue;
    return {{}, "there is no snapshot " + checkpoint_name(slot) + "; see snapshots_list"};
  }
  if (out.value.sources.size() < 2) return {{}, "specify at least two different snapshots"};
  made.head.sequence = there.front().sequence + 1;
  complete(&made);
  // Uses a free slot if there is one. Otherwise, overwrites one of the sources, which must be a
  // manual snapshot.
  const auto free = free_slot(auto_slots, all_slots);
  const auto own = std::find_if(out.value.sources.begin(), out.value.sources.end(),
                                [](unsigned slot) { return slot >= auto_slots; });
  if (!free && own == out.value.sources.end()) {
    return {{},
            "all manual snapshot slots are in use; delete a snapshot, or compact manual snapshots"};
  }
  made.head.slot = free ? *free : *own;
  out.problem = commit(made, made.head.slot, free ? Over::nothing : Over::files);
  if (out.good()) {
    for (const unsigned slot : out.value.sources) {
      if (slot != made.head.slot) forget(slot);
    }
    // Objects of the overwritten snapshot may remain. The next acquire() removes them.
    if (!free) acquired_ = false;
  }
  out.value.head = made.head;
  return out;
}

}  // namespace builtin_files
