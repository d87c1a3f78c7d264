// Writes the database files of one chain, to which no other process writes. Only one file is open
// for writing at a time.
//
// Owner: the Writer, which opens the Store on the control thread and then uses it on the writer
// thread. A failure does not change the chain: head() stays at the last committed row.
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

  // Maximum number of rows that are remembered in order to detect records that the host sends again
  // after a restart; see bh_record.number.
  static constexpr std::size_t remembered_rows = 8'192;  // per table, and for replayed records
  // How far seq skips ahead if the last rows are unreadable. No seq may be signed twice, so this
  // must be more than the number of rows that may be missing.
  static constexpr std::uint64_t damage_leap = std::uint64_t{1} << 32;

  // If the disk is faulty, creating more files does not help. A file that replaced a damaged one
  // and is still empty may therefore be replaced only after this time.
  static constexpr std::uint64_t leave_again_ms = 60'000;

  // The approximate size of the WAL at which SQLite copies it into the database file. A large
  // commit, or a reader that prevents copying, may make the WAL larger.
  static constexpr std::uint64_t log_bytes = 4u << 20;

  Store(std::string folder, std::uint32_t chain, std::string instance, const Config &config,
        Log log);

  // Opens the last file of the chain, or creates the first file. If the last file is damaged or has
  // another schema_version, continues in a new file. May be called again after a failure. Returns
  // the error, or an empty string on success.
  std::string open();
  void close();
  bool is_open() const noexcept { return db_.get() != nullptr; }

  // begin(), put(), mark() and commit() form a transaction. If any of them returns false,
  // rollback() must be called. If is_damaged() is true, begin() continues in a new file.
  bool begin();
  // Inserts a row. If the row already exists, sets *known and inserts nothing.
  bool put(const Row &row, bool *known);
  bool mark(std::string_view kind, std::string_view detail);
  bool commit();
  void rollback();
  std::string error() const;
  // Returns true if the last failure was caused by a damaged page of the current file. Reading the
  // file may still succeed.
  bool is_damaged() const noexcept { return !damage_.empty(); }
  // Returns true if the last failure may be temporary, for example because the disk is full or the
  // file is locked.
  bool may_pass() const;
  // Remembers committed rows to detect repeated records; see bh_record.number.
  void remember(const std::vector<Row> &rows);
  bool is_remembered(const Row &row) const;

  // Syncs the committed rows to disk, signs them, and stores the signature as a checkpoint. Does
  // nothing if all rows are signed. Returns false if no file is open or one of these steps fails.
  bool checkpoint(const Sign &sign);
  std::uint64_t unsigned_rows() const noexcept { return head_.seq - signed_seq_; }
  bool is_full();  // the current file has reached segment_bytes
  // Continues in a new file. Returns the error, or an empty string on success.
  std::string rotate();
  // Removes the oldest files while max_bytes or retention_days is exceeded. Writes a mark for each
  // removed file.
  void drop_old();

  const record_store::Head &head() const noexcept { return head_; }
  bool was_unclean() const noexcept { return unclean_; }
  // Returns the highest record number that was found when the store was opened, or 0 if there was
  // none.
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
  Row identity_;  // the last recorded session identity
  record_store::Statement page_count_;
  record_store::Head head_, before_;  // before_ is head_ at the last begin()
  std::uint64_t signed_seq_ = 0;
  std::uint64_t page_bytes_ = 4096;
  bool unclean_ = false;
  bool ended_before_ = false;  // the previous file was closed cleanly; set by read_predecessor()
  std::uint64_t last_number_ = 0;
  int open_code_ = 0;     // why open_file() failed
  bool no_room_ = false;  // open_file() failed because the disk was full
  std::string damage_;    // SQLite's error message; empty if no damage is known
  std::string carried_;   // first mark of the current file; empty after it is committed
  std::chrono::steady_clock::time_point leave_not_before_{};
  std::map<std::uint64_t, std::string> remembered_;  // timestamps by record number
};

}  // namespace telemetry_sqlite
