#include "route/task_notes.hpp"

#include <utility>

namespace bulkhead {

void TaskNotes::keep(TaskNote note) {
  if (const auto at = by_id_.find(note.id); at != by_id_.end()) {
    *at->second = std::move(note);
    notes_.splice(notes_.end(), notes_, at->second);
    return;
  }
  if (notes_.size() >= max_notes) {
    by_id_.erase(notes_.front().id);
    notes_.pop_front();
  }
  const auto added = notes_.insert(notes_.end(), std::move(note));
  by_id_.emplace(added->id, added);
}

const TaskNote *TaskNotes::find(std::string_view id) const {
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : &*at->second;
}

void TaskNotes::forget(std::string_view id) {
  const auto at = by_id_.find(id);
  if (at == by_id_.end()) return;
  notes_.erase(at->second);
  by_id_.erase(at);
}

void TaskNotes::clear() {
  by_id_.clear();
  notes_.clear();
}

}  // namespace bulkhead
