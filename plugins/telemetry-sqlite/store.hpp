// The files of one chain and the state of their only writer. The current file is open.
//
// Owner: the Writer. Opened on the control thread, then used on the writer thread. After a failure,
// the chain is unchanged: head() is the last committed row.
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

  // Limit for rows whose records a restarted process may offer again; see bh_record.number.
  static constexpr std::size_t remembered_rows = 8'192;  // per table, and for replayed records
  // Distance by which seq skips ahead if the last rows are unreadable. It exceeds the number of
  // rows that may be missing, because no seq may be signed twice.
  static constexpr std::uint64_t damage_leap = std::uint64_t{1} << 32;

  // If a file replaced a damaged file and has no rows yet, it is not replaced before this time has
  // passed. If the disk is faulty, more files do not help.
  static constexpr std::uint64_t leave_again_ms = 60'000;

  // Approximate size at which the WAL is copied into the file. One commit, or a reader that
  // prevents copying, can make the WAL larger.
  static constexpr std::uint64_t log_bytes = 4u << 20;

  Store(std::string folder, std::uint32_t chain, std::string instance, const Config &config,
        Log log);

  // Opens the chain's last file, or creates one. May be called again after a failure. A file that
  // is damaged or has another schema_version is replaced with a new file. Returns the error, or an
  // empty string on success.
  std::string open();
  void close();
  bool is_open() const noexcept { return db_.get() != nullptr; }

  // The functions of one transaction. If one of them returns false, rollback() must be called.
  // begin() continues in a new file if is_damaged() returns true.
  bool begin();
  // If the row already exists, sets *known and inserts nothing.
  bool put(const Row &row, bool *known);
  bool mark(std::string_view kind, std::string_view detail);
  bool commit();
  void rollback();
  std::string error() const;
  // Returns true if the last failure was a damaged page of the current file. Such a page may be
  // read only by writes.
  bool is_damaged() const noexcept { return !damage_.empty(); }
  // Returns true if the last failure may be temporary, such as a full disk or a lock.
  bool may_pass() const;
  // Remembers committed rows whose records may be offered again; see bh_record.number.
  void remember(const std::vector<Row> &rows);
  bool is_remembered(const Row &row) const;

  // Signs and stores a checkpoint; the signed rows are flushed to the disk first. Returns false if
  // there is no signature, if the checkpoint could not be written, or if no file is open.
  bool checkpoint(const Sign &sign);
  std::uint64_t unsigned_rows() const noexcept { return head_.seq - signed_seq_; }
  bool is_full();  // true if the current file has reached segment_bytes
  // Creates the next file, which continues the chain. Returns the error, or an empty string on
  // success.
  std::string rotate();
  // Removes files that exceed max_bytes or retention_days, and writes a mark for each.
  void drop_old();

  const record_store::Head &head() const noexcept { return head_; }
  bool was_unclean() const noexcept { return unclean_; }
  // Returns the number of the last record, or 0 if there is none.
  std::uint64_t last_number() const noexcept { return last_number_; }
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
  Row identity_;  // the session identity that was recorded last
  record_store::Statement page_count_;
  record_store::Head head_, before_;  // before_ is the head at begin()
  std::uint64_t signed_seq_ = 0;
  std::uint64_t page_bytes_ = 4096;
  bool unclean_ = false;
  bool ended_before_ = false;  // whether the previous file ended cleanly; set by read_predecessor()
  std::uint64_t last_number_ = 0;
  int open_code_ = 0;     // cause of the last failure of open_file()
  bool no_room_ = false;  // the disk was full
  std::string damage_;    // SQLite's error, or empty if no damage is known
  std::string carried_;   // first mark of the current file until it is committed
  std::chrono::steady_clock::time_point leave_not_before_{};
  std::map<std::uint64_t, std::string> remembered_;  // record number -> timestamp
};

}  // namespace telemetry_sqlite
