// Owns SQLite connections and statements. Functions return SQLite's result codes; message() returns
// the error text.
//
// Each connection may be used by only one thread at a time.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace record_store {

class Database {
 public:
  static constexpr int busy_ms = 2'000;  // time-out for locks of other connections

  // `flags` are SQLITE_OPEN_* values. After a failure, message() returns the error.
  int open(const std::string &path, int flags);
  void close() noexcept { db_.reset(); }
  int run(const char *sql);  // executes statements without result rows
  sqlite3 *get() const noexcept { return db_.get(); }
  std::string message() const;
  // Returns true if nothing has ever been committed to the file. This is the case if the creation
  // of the file was interrupted.
  bool is_empty();

 private:
  struct Close {
    void operator()(sqlite3 *db) const noexcept { sqlite3_close_v2(db); }
  };
  std::unique_ptr<sqlite3, Close> db_;
};

class Statement {
 public:
  int prepare(sqlite3 *db, std::string_view sql);
  int step() noexcept { return sqlite3_step(stmt_.get()); }
  void reset() noexcept { sqlite3_reset(stmt_.get()); }
  void bind(int at, std::int64_t value) noexcept { sqlite3_bind_int64(stmt_.get(), at, value); }
  void bind(int at, std::string_view value) noexcept;  // borrowed until reset()
  std::int64_t integer(int column) const noexcept {
    return sqlite3_column_int64(stmt_.get(), column);
  }
  // The returned views are valid until the next step().
  std::string_view text(int column) const noexcept;
  std::string_view blob(int column) const noexcept;
  sqlite3_stmt *get() const noexcept { return stmt_.get(); }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt *stmt) const noexcept { sqlite3_finalize(stmt); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> stmt_;
};

}  // namespace record_store
