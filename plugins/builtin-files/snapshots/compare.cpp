#include "builtin-files/snapshots/compare.hpp"

#include <fcntl.h>

#include "builtin-files/snapshots/objects.hpp"

namespace builtin_files {
namespace {

bool is_told_of(const Entry &e) {
  return e.kind != Kind::folder;
}

}  // namespace

std::string_view op_name(Op op) noexcept {
  return op == Op::created ? "created" : op == Op::modified ? "modified" : "deleted";
}

void for_each_change(const Entries &now, const Entries &before,
                     const std::function<bool(const Entry &, const Entry &)> &same,
                     const std::function<void(const Change &)> &on_change) {
  auto b = before.begin();
  const auto gone = [&] {
    if (is_told_of(*b)) on_change({Op::deleted, nullptr, &*b});
    ++b;
  };
  for (const Entry &n : now) {
    while (b != before.end() && path_less(b->path, n.path)) gone();
    const Entry *other = b != before.end() && b->path == n.path ? &*b++ : nullptr;
    if (other != nullptr && other->kind == Kind::folder && is_told_of(n)) other = nullptr;
    if (other != nullptr && is_told_of(*other) && !is_told_of(n)) {
      on_change({Op::deleted, nullptr, other});
    }
    if (!is_told_of(n)) continue;
    if (other == nullptr) {
      on_change({Op::created, &n, nullptr});
    } else if (n.kind != other->kind || !same(n, *other)) {
      on_change({Op::modified, &n, other});
    }
  }
  while (b != before.end()) gone();
}

bool same_entry(const Entry &a, const Entry &b) noexcept {
  if (a.kind != b.kind || a.target != b.target) return false;
  if (a.kind == Kind::link) return true;
  if (kept_mode(a.mode) != kept_mode(b.mode)) return false;
  if (a.kind == Kind::folder) return true;
  if (a.stored && b.stored) return a.hash == b.hash;
  return a.stored == b.stored && a.signature.size == b.signature.size &&
         a.signature.modified_ns == b.signature.modified_ns;
}

bool LiveCompare::same(const Entry &live, const Entry &kept) {
  const bool comparable = live.kind == Kind::file && kept.kind == Kind::file && kept.stored;
  if (!comparable) return same_entry(live, kept);
  if (kept_mode(live.mode) != kept_mode(kept.mode)) return false;
  if (kept.settled && live.signature == kept.signature) return true;
  if (live.signature.size != kept.signature.size) return false;
  const Hash *hash = hash_of_live(live);
  return hash != nullptr && *hash == kept.hash;
}

// Returns nullptr if the file cannot be read or the call must stop.
const Hash *LiveCompare::hash_of_live(const Entry &live) {
  const auto known = hashes_.find(&live);
  if (known != hashes_.end()) return &known->second;
  if (call_.must_stop()) return nullptr;
  const Place place = workspace_.place(live.path, false, Links::refuse);
  if (!place.folder.valid()) return nullptr;
  const Fd fd =
      Workspace::open_below(place.folder.get(), place.name.c_str(), O_RDONLY | O_NOFOLLOW);
  Hash hash{};
  if (!fd.valid() || !Objects::hash_file(fd.get(), [this] { return call_.must_stop(); }, &hash)) {
    return nullptr;
  }
  return &hashes_.emplace(&live, hash).first->second;
}

}  // namespace builtin_files
