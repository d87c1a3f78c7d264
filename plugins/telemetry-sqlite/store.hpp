// The files that one chain consists of, as their only writer has them: the present one is open.
//
// Owner: the Writer. Thread: opened on the control thread, then the writer's. Whatever fails leaves
// the chain as it was: head() is the last row that was committed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <bulkhead/abi/ext/draft/sign.h>

#include "record-store/chain.hpp"
#include "record-store/files.hpp"
#include "telemetry-sqlite/config.hpp"
#include "telemetry-sqlite/row.hpp"
#include "telemetry-sqlite/tables.hpp"

namespace telemetry_sqlite {

class Store {
 public:
  using Sign = std::function<bool(const std::string &statement, bh_signature *out)>;
  using Log = std::function<void(std::int32_t level, const std::string &text)>;

  // What rows of an earlier life of the process may be offered again; see bh_record.number.
  static constexpr std::size_t remembered_rows = 8'192;  // of each table, and of those replayed
  // How far seq leaps where the last rows cannot be read: further than they can have gone, since
  // nothing is signed twice for one place of the chain.
  static constexpr std::uint64_t damage_leap = std::uint64_t{1} << 32;

  // A file that took the place of a damaged one and has kept nothing yet is not left for another
  // sooner than that: where the disk is at fault, more files do not help.
  static constexpr std::uint64_t leave_again_ms = 60'000;

  // How large the log (-wal) gets before it is copied into the file, about; larger by what one
  // commit writes, and while a reader keeps it from being copied.
  static constexpr std::uint64_t log_bytes = 4u << 20;

  Store(std::string folder, std::uint32_t chain, std::string instance, const Config &config,
        Log log);

  // Goes on with the chain's last file, or begins one; again after it has failed. A new file takes
  // the place of one that is damaged, and of one of another schema_version. The error's text.
  std::string open();
  void close();
  bool is_open() const noexcept { return db_.get() != nullptr; }

  // One transaction; after a false rollback() is due. begin() goes on in a new file where
  // is_damaged().
  bool begin();
  // Sets *known when the row is there already, and inserts nothing.
  bool put(const Row &row, bool *known);
  bool mark(std::string_view kind, std::string_view detail);
  bool commit();
  void rollback();
  std::string error() const;
  // What failed last has met a damaged page of the present file, which only writing may have read.
  bool is_damaged() const noexcept { return !damage_.empty(); }
  // Of the last failure: it may be over by itself, like a full disk or another's lock.
  bool may_pass() const;
  // Rows that were committed under numbers which may come again; see bh_record.number.
  void remember(const std::vector<Row> &rows);
  bool is_remembered(const Row &row) const;

  // Signed and kept; what it covers is on the disk before. False: nobody has signed, or it could
  // not be written, or no file is open.
  bool checkpoint(const Sign &sign);
  std::uint64_t unsigned_rows() const noexcept { return head_.seq - signed_seq_; }
  bool is_full();  // the present file, by segment_bytes
  // Begins the next file, which carries the head over. The error's text.
  std::string rotate();
  // What max_bytes and retention_days do not keep; each is marked.
  void drop_old();

  const record_store::Head &head() const noexcept { return head_; }
  bool was_unclean() const noexcept { return unclean_; }
  std::uint64_t last_number() const noexcept { return last_number_; }  // of a record; 0: none
  const std::string &path() const noexcept { return path_; }

 private:
  std::string open_file(std::uint32_t number, const std::string &previous_file);
  std::string make_tables(std::uint32_t number, const std::string &previous_file);
  std::string prepare();
  std::string leave(int schema);
  std::string open_failure(std::string text);
  std::string look_back(std::uint32_t number);
  std::string leave_damaged();
  bool begin_carried();
  bool noted(bool done);
  void remember_rows(sqlite3 *db);
  bool look_for_end(sqlite3 *db, bool without);
  record_store::Head last_of(const record_store::SegmentFile &file) const;
  bool drop(const record_store::SegmentFile &file, std::string_view why);

  const std::string folder_, instance_;
  const std::uint32_t chain_;
  const Config &config_;
  const Log log_;
  std::string path_;
  std::uint32_t number_ = 0;
  record_store::Database db_;
  Tables tables_;
  Row identity_;  // whose record it is, as last said
  record_store::Statement page_count_;
  record_store::Head head_, before_;  // before_: as of begin()
  std::uint64_t signed_seq_ = 0;
  std::uint64_t page_bytes_ = 4096;
  bool unclean_ = false;
  bool ended_before_ = false;  // the file before the present one, by look_back()
  std::uint64_t last_number_ = 0;
  int open_code_ = 0;     // why the last open_file() failed
  bool no_room_ = false;  // and that was for want of room
  std::string damage_;    // what SQLite said; empty: nothing is known to be damaged
  std::string carried_;   // the mark that the present file begins with, until that is committed
  std::chrono::steady_clock::time_point leave_not_before_{};
  std::map<std::uint64_t, std::string> remembered_;  // record number -> its timestamp
};

}  // namespace telemetry_sqlite
