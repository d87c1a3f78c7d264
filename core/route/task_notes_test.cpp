// Tests the notes of tasks: renewal, and which note is removed at the limit.
#include "route/task_notes.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead;

namespace {

TaskNote note_of(std::size_t number, bh_session session) {
  return {"task-" + std::to_string(number), "\"sealed\"", "job", session};
}

}  // namespace

TEST_CASE("a note names the client that has used the task last") {
  TaskNotes notes;
  notes.keep(note_of(1, 7));
  notes.keep(note_of(2, 8));
  REQUIRE(notes.find("task-1") != nullptr);
  CHECK(notes.find("task-1")->session == 7);
  CHECK(notes.find("task-2")->session == 8);
  CHECK(notes.find("task-3") == nullptr);
  CHECK(notes.find("task") == nullptr);
  notes.keep(note_of(1, 9));
  CHECK(notes.find("task-1")->session == 9);
  CHECK(notes.find("task-2")->session == 8);
  CHECK(notes.size() == 2);
  notes.forget("task-1");
  notes.forget("task-3");
  CHECK(notes.find("task-1") == nullptr);
  CHECK(notes.find("task-2")->session == 8);
  notes.clear();
  CHECK(notes.find("task-2") == nullptr);
  CHECK(notes.size() == 0);
}

TEST_CASE("at the limit, the notes that were renewed least recently are removed") {
  TaskNotes notes;
  for (std::size_t i = 0; i < TaskNotes::max_notes; ++i) notes.keep(note_of(i, 1));
  notes.keep(note_of(0, 2));  // renewed: the oldest ones are now 1 and 2
  for (const std::size_t added : {TaskNotes::max_notes, TaskNotes::max_notes + 1}) {
    notes.keep(note_of(added, 3));
    CHECK(notes.size() == TaskNotes::max_notes);
    CHECK(notes.find("task-" + std::to_string(added))->session == 3);
  }
  CHECK(notes.find("task-1") == nullptr);
  CHECK(notes.find("task-2") == nullptr);
  CHECK(notes.find("task-0")->session == 2);
  CHECK(notes.find("task-3")->session == 1);
}

TEST_CASE("a client with many tasks does not remove the notes of others") {
  TaskNotes notes;
  const auto has = [&notes](std::size_t number) {
    return notes.find("task-" + std::to_string(number)) != nullptr;
  };
  for (const std::size_t i : {0u, 1u}) notes.keep(note_of(i, 1));
  for (std::size_t i = 2; i < 3 * TaskNotes::max_notes; ++i) {
    notes.keep(note_of(i, i % 16 == 0 ? 3 : 2));
  }
  CHECK(notes.size() == TaskNotes::max_notes);
  CHECK((has(0) && has(1)));
  CHECK((has(16) && has(32)));
  CHECK_FALSE((has(2) || has(3)));
  CHECK(has(3 * TaskNotes::max_notes - 1));
  // The notes that another client renews are counted as that client's.
  for (std::size_t i = 2 * TaskNotes::max_notes + 1; i < 3 * TaskNotes::max_notes; ++i) {
    if (has(i)) notes.keep(note_of(i, 4));
  }
  notes.keep(note_of(9'001, 1));
  CHECK((has(0) && has(1) && has(9'001)));
  CHECK(notes.size() == TaskNotes::max_notes);
}

TEST_CASE("clients with equal numbers of tasks each lose their own note first") {
  TaskNotes notes;
  for (std::size_t i = 0; i < TaskNotes::max_notes; ++i) notes.keep(note_of(i, i + 1));
  notes.keep(note_of(9'001, 6));
  CHECK(notes.find("task-0") != nullptr);
  CHECK(notes.find("task-5") == nullptr);
  CHECK(notes.find("task-9001")->session == 6);
  notes.keep(note_of(9'002, 9'000));  // each session has one note: the oldest note is removed
  CHECK(notes.find("task-0") == nullptr);
  CHECK(notes.find("task-1") != nullptr);
  CHECK(notes.size() == TaskNotes::max_notes);
  notes.clear();
  notes.keep(note_of(1, 6));
  CHECK(notes.find("task-1")->session == 6);
  CHECK(notes.size() == 1);
}
