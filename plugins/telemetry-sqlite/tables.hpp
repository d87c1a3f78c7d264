// Converts records to rows of the tables.
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
  // Returns SQLite's result code. The statements are valid until close() or the next prepare().
  int prepare(sqlite3 *db);
  void close() { *this = Tables(); }

  // If SQLite reports an error, returns false, and *head is invalid. Ignores records of unknown
  // kinds. A record with invalid detail is replaced with a mark.
  bool put(const Row &row, record_store::Head *head);
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
  bool unreadable(const Row &row, Head *head);

  record_store::ChainedInsert calls_, decisions_, intents_, approvals_, net_, fs_, snapshots_,
      marks_;
  record_store::Statement forget_identity_, insert_identity_;
};

}  // namespace telemetry_sqlite
