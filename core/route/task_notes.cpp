#include "route/task_notes.hpp"

#include <algorithm>
#include <utility>

namespace bulkhead {

void TaskNotes::keep(TaskNote note) {
  if (const auto at = by_id_.find(note.id); at != by_id_.end()) {
    ++counts_[note.session];
    count_down(at->second->session);
    *at->second = std::move(note);
    notes_.splice(notes_.end(), notes_, at->second);
    return;
  }
  ++counts_[note.session];
  if (notes_.size() >= max_notes) make_room();
  const auto added = notes_.insert(notes_.end(), std::move(note));
  by_id_.emplace(added->id, added);
}

// The new note is already counted, so it does not displace a note of another client that has as
// many notes as this client had before.
void TaskNotes::make_room() {
  const auto fewer = [](const auto &a, const auto &b) { return a.second < b.second; };
  const std::size_t most = std::max_element(counts_.begin(), counts_.end(), fewer)->second;
  const auto full = [&](const TaskNote &note) { return counts_.at(note.session) == most; };
  // Such a note exists: max_notes notes are stored, so a session whose only note is the new one
  // cannot have more notes than every other session.
  remove(by_id_.find(std::find_if(notes_.begin(), notes_.end(), full)->id));
}

void TaskNotes::count_down(bh_session session) {
  const auto count = counts_.find(session);
  if (--count->second == 0) counts_.erase(count);
}

void TaskNotes::remove(ById::iterator at) {
  count_down(at->second->session);
  notes_.erase(at->second);
  by_id_.erase(at);
}

const TaskNote *TaskNotes::find(std::string_view id) const {
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : &*at->second;
}

void TaskNotes::forget(std::string_view id) {
  const auto at = by_id_.find(id);
  if (at != by_id_.end()) remove(at);
}

void TaskNotes::clear() {
  by_id_.clear();
  notes_.clear();
  counts_.clear();
}

}  // namespace bulkhead
