// The files of one chain, with their only writer's state; the current file is open.
//
// Owner: the Writer. Thread: opened on the control thread, then used on the writer's. After a
// failure the chain is unchanged: head() is the last committed row.
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

  // Limit for records that may be offered again by a restarted process; see bh_record.number.
  static constexpr std::size_t remembered_rows = 8'192;  // of each table, and of replayed records
  // Leap of seq if the last rows are unreadable: larger than the number of rows that may be
  // missing, since no seq may be signed twice.
  static constexpr std::uint64_t damage_leap = std::uint64_t{1} << 32;

  // Minimum time before a file without rows that replaced a damaged one is replaced itself: if the
  // disk is faulty, more files do not help.
  static constexpr std::uint64_t leave_again_ms = 60'000;

  // Approximate size of the WAL before it is copied into the file. It can exceed this by one
  // commit, and while a reader prevents copying.
  static constexpr std::uint64_t log_bytes = 4u << 20;

  Store(std::string folder, std::uint32_t chain, std::string instance, const Config &config,
        Log log);

  // Opens the chain's last file, or creates one; may be called again after a failure. A damaged
  // file or one of another schema_version is replaced by a new one. Returns the error text.
  std::string open();
  void close();
  bool is_open() const noexcept { return db_.get() != nullptr; }

  // One transaction. If a function returns false, call rollback(). begin() continues in a new file
  // if is_damaged().
  bool begin();
  // If the row exists already, sets *known and inserts nothing.
  bool put(const Row &row, bool *known);
  bool mark(std::string_view kind, std::string_view detail);
  bool commit();
  void rollback();
  std::string error() const;
  // True if the last failure was a damaged page of the current file, which may be read by writes
  // only.
  bool is_damaged() const noexcept { return !damage_.empty(); }
  // True if the last failure may be temporary, such as a full disk or a lock.
  bool may_pass() const;
  // Remembers committed rows whose records may be offered again; see bh_record.number.
  void remember(const std::vector<Row> &rows);
  bool is_remembered(const Row &row) const;

  // Signs and stores a checkpoint; the signed rows are on the disk before. False: no signature, the
  // checkpoint could not be written, or no file is open.
  bool checkpoint(const Sign &sign);
  std::uint64_t unsigned_rows() const noexcept { return head_.seq - signed_seq_; }
  bool is_full();  // the current file, by segment_bytes
  // Creates the next file, which continues the chain. Returns the error text.
  std::string rotate();
  // Removes files beyond max_bytes and retention_days, with a mark for each.
  void drop_old();

  const record_store::Head &head() const noexcept { return head_; }
  bool was_unclean() const noexcept { return unclean_; }
  std::uint64_t last_number() const noexcept {
    return last_number_;
  }  // of the last record; 0:
     // none
  const std::string &path() const noexcept { return path_; }

 private:
  std::string open_file(std::uint32_t number, const std::string &previous_file);
  std::string make_tables(std::uint32_t number, const std::string &previous_file);
  std::string prepare();
  std::string leave(int schema);
  std::string open_failure(std::string text);
  std::string read_predecessor(std::uint32_t number);
  std::string leave_damaged();
  bool begin_carried();
  bool noted(bool done);
  void remember_rows(sqlite3 *db);
  bool ended_regularly(sqlite3 *db, bool without);
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
  Row identity_;  // the identity of the session, as recorded last
  record_store::Statement page_count_;
  record_store::Head head_, before_;  // before_: the head at begin()
  std::uint64_t signed_seq_ = 0;
  std::uint64_t page_bytes_ = 4096;
  bool unclean_ = false;
  bool ended_before_ = false;  // of the file before the current one, set by read_predecessor()
  std::uint64_t last_number_ = 0;
  int open_code_ = 0;     // reason of the last failure of open_file()
  bool no_room_ = false;  // the disk was full
  std::string damage_;    // SQLite's error; empty: no known damage
  std::string carried_;   // first mark of the current file, until it is committed
  std::chrono::steady_clock::time_point leave_not_before_{};
  std::map<std::uint64_t, std::string> remembered_;  // record number -> timestamp
};

}  // namespace telemetry_sqlite
