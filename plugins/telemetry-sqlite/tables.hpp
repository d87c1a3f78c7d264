// Converts records to rows of the database tables.
//
// Owner: the Store. Runs on the writer thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "record-store/chain.hpp"
#include "telemetry-sqlite/row.hpp"

namespace telemetry_sqlite {

class Tables {
 public:
  // Prepares the insert statements. Returns SQLite's result code. The statements remain valid until
  // close() or the next prepare().
  int prepare(sqlite3 *db);
  void close() { *this = Tables(); }

  // Inserts a record. Ignores records of unknown kinds. If the detail of a record is invalid,
  // inserts a mark instead. Returns false if SQLite reports an error; *head is then invalid.
  bool put(const Row &row, record_store::Head *head);
  // Inserts a mark with the current time.
  bool mark(std::string_view kind, std::string_view detail, record_store::Head *head);

 private:
  using Head = record_store::Head;

  bool call(const Row &row, Head *head);
  bool decision(const Row &row, Head *head);
  bool intent(const Row &row, Head *head);
  bool approval(const Row &row, Head *head);
  bool net(const Row &row, Head *head);
  bool fs(const Row &row, Head *head);
  bool snapshot(const Row &row, Head *head);
  bool identity(const Row &row, Head *head);
  bool policy(const Row &row, Head *head);
  bool plugin(const Row &row, Head *head);
  bool unreadable(const Row &row, Head *head);
  bool mark(std::string_view kind, std::string_view detail, std::uint64_t unix_ns, Head *head);

  record_store::ChainedInsert calls_, decisions_, intents_, approvals_, net_, fs_, snapshots_,
      marks_;
  record_store::Statement forget_identity_, insert_identity_;
};

}  // namespace telemetry_sqlite
