#include "sources/corp_revisions.hpp"

#include <algorithm>
#include <sstream>
#include <vector>

#include "common/paths.hpp"
#include "common/private_file.hpp"
#include "profile/revision.hpp"

namespace bulkhead::program {
namespace {

constexpr std::string_view revoked_word = "revoked";
// Stored as the revision of a profile that has never been used but whose catalogue has been read.
constexpr std::string_view no_revision = "0000.0000.0";

CorpRevision *find(std::vector<CorpRevision> &seen, const std::string &id) {
  const auto at =
      std::find_if(seen.begin(), seen.end(), [&](const CorpRevision &one) { return one.id == id; });
  return at == seen.end() ? nullptr : &*at;
}

bool same(const CorpRevision &a, const CorpRevision &b) {
  return a.id == b.id && a.revision == b.revision;
}

// Sets *last to the later of the two revisions. Returns true if *last changed.
bool take_later(std::string *last, const std::string &now) {
  if (!comes_before(*last, now)) return false;
  *last = now;
  return true;
}

// Returns the entry for a profile, and creates it if it does not exist.
CorpRevision &line_of(std::vector<CorpRevision> &seen, const std::string &id) {
  if (CorpRevision *last = find(seen, id)) return *last;
  if (seen.size() >= CorpRevisions::max_ids) seen.erase(seen.begin());
  seen.push_back({id, std::string(no_revision), std::string(no_revision)});
  return seen.back();
}

}  // namespace

Result<CorpRevisions::Seen> CorpRevisions::read() const {
  auto text = read_private(file(), max_bytes);
  Seen out;
  if (!text) {
    if (text.error().code == BH_E_NOT_FOUND) return out;
    return std::unexpected(text.error());
  }
  std::istringstream lines(*text);
  for (CorpRevision seen; lines >> seen.id >> seen.revision >> seen.current;) {
    const bool revoked = seen.current == revoked_word;
    auto &list = revoked ? out.revoked : out.last;
    if (!is_profile_id(seen.id) || !is_revision(seen.revision) ||
        (!revoked && !is_revision(seen.current)) ||
        list.size() >= (revoked ? max_revoked : max_ids)) {
      return fail(BH_E_INVALID, file() + " is damaged; remove it to start over");
    }
    list.push_back(seen);
  }
  return out;
}

Result<void> CorpRevisions::write(const Seen &seen) const {
  std::string text;
  for (const CorpRevision &one : seen.last)
    text += one.id + " " + one.revision + " " + one.current + "\n";
  for (const CorpRevision &one : seen.revoked)
    text += one.id + " " + one.revision + " " + std::string(revoked_word) + "\n";
  return write_private(folder_, "corp-revisions", text);
}

template <class Change>
Result<void> CorpRevisions::update(const Change &change) const {
  auto seen = read();
  if (!seen) return std::unexpected(seen.error());
  if (!change(*seen)) return {};
  if (auto made = make_private_dir(folder_); !made) return made;
  const auto lock = lock_file(file() + ".lock", lock_wait_ms);
  if (!lock) return std::unexpected(lock.error());
  // Another process may have changed the file before the lock was acquired.
  seen = read();
  if (!seen) return std::unexpected(seen.error());
  if (!change(*seen)) return {};
  return write(*seen);
}

Result<void> CorpRevisions::check(const CorpRevision &now) const {
  auto seen = read();
  if (!seen) return std::unexpected(seen.error());
  for (const CorpRevision &one : seen->revoked)
    if (same(one, now))
      return fail(BH_E_DENIED, "revision " + now.revision + " of \"" + now.id +
                                   "\" was revoked by an earlier catalogue (" + tilde(file()) +
                                   ") [revoked]");
  const CorpRevision *last = find(seen->last, now.id);
  if (last == nullptr) return {};
  const auto refuse = [&](const std::string &what, const std::string &is, const std::string &was) {
    return fail(BH_E_DENIED, what + " is " + is + ", but " + was + " was seen before (" +
                                 tilde(file()) + "): older revisions are rejected [rollback]");
  };
  if (comes_before(now.revision, last->revision))
    return refuse("the revision of \"" + now.id + "\"", now.revision, last->revision);
  if (comes_before(now.current, last->current))
    return refuse("the catalogue's current revision of \"" + now.id + "\"", now.current,
                  last->current);
  return {};
}

Result<void> CorpRevisions::remember(const CorpRevision &now) const {
  return update([&](Seen &seen) {
    CorpRevision &last = line_of(seen.last, now.id);
    const bool revision = take_later(&last.revision, now.revision);
    return take_later(&last.current, now.current) || revision;
  });
}

Result<void> CorpRevisions::remember_catalogue(const CorpRevision &now) const {
  return update([&](Seen &seen) {
    const bool changed = take_later(&line_of(seen.last, now.id).current, now.current);
    const bool known = std::any_of(seen.revoked.begin(), seen.revoked.end(),
                                   [&](const CorpRevision &one) { return same(one, now); });
    if (!now.revoked || known) return changed;
    if (seen.revoked.size() >= max_revoked) seen.revoked.erase(seen.revoked.begin());
    seen.revoked.push_back(now);
    return true;
  });
}

}  // namespace bulkhead::program
