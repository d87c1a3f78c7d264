#include "corp_revisions.hpp"

#include <algorithm>
#include <sstream>
#include <vector>

#include "paths.hpp"
#include "private_file.hpp"

namespace bulkhead::program {
namespace {

Result<std::vector<CorpRevision>> read_seen(const std::string &file) {
  auto text = read_private(file, CorpRevisions::max_bytes);
  std::vector<CorpRevision> out;
  if (!text) {
    if (text.error().code == BH_E_NOT_FOUND) return out;
    return std::unexpected(text.error());
  }
  std::istringstream lines(*text);
  for (CorpRevision seen; lines >> seen.id >> seen.revision >> seen.current;) {
    if (!is_profile_id(seen.id) || !is_revision(seen.revision) || !is_revision(seen.current) ||
        out.size() >= CorpRevisions::max_ids) {
      return fail(BH_E_INVALID, file + ": is damaged; remove it to begin anew");
    }
    out.push_back(seen);
  }
  return out;
}

CorpRevision *find(std::vector<CorpRevision> &seen, const std::string &id) {
  const auto at =
      std::find_if(seen.begin(), seen.end(), [&](const CorpRevision &one) { return one.id == id; });
  return at == seen.end() ? nullptr : &*at;
}

}  // namespace

Result<void> CorpRevisions::check(const CorpRevision &now) const {
  auto seen = read_seen(file());
  if (!seen) return std::unexpected(seen.error());
  const CorpRevision *last = find(*seen, now.id);
  if (last == nullptr) return {};
  const auto refuse = [&](const std::string &what, const std::string &is, const std::string &was) {
    return fail(BH_E_DENIED, what + " is " + is + ", and " + was + " was here before (" +
                                 tilde(file()) + "): an older one is not taken [rollback]");
  };
  if (comes_before(now.revision, last->revision))
    return refuse("the revision of \"" + now.id + "\"", now.revision, last->revision);
  if (comes_before(now.current, last->current))
    return refuse("the catalogue's current revision of \"" + now.id + "\"", now.current,
                  last->current);
  return {};
}

Result<void> CorpRevisions::remember(const CorpRevision &now) const {
  auto seen = read_seen(file());
  if (!seen) return std::unexpected(seen.error());
  CorpRevision *last = find(*seen, now.id);
  if (last != nullptr && last->revision == now.revision && last->current == now.current) return {};
  if (last == nullptr) {
    if (seen->size() >= max_ids) seen->erase(seen->begin());
    last = &seen->emplace_back();
  }
  *last = now;
  std::string text;
  for (const CorpRevision &one : *seen)
    text += one.id + " " + one.revision + " " + one.current + "\n";
  if (auto made = make_private_dir(folder_); !made) return made;
  return write_private(folder_, "corp-revisions", text);
}

}  // namespace bulkhead::program
