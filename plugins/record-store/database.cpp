#include "record-store/database.hpp"

namespace record_store {

int Database::open(const std::string &path, int flags) {
  sqlite3 *db = nullptr;
  // SQLite needs no mutexes, because only one thread uses the connection at a time.
  const int result = sqlite3_open_v2(path.c_str(), &db, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  db_.reset(db);
  if (db != nullptr) {
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, busy_ms);
  }
  return result;
}

int Database::run(const char *sql) {
  return sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
}

std::string Database::message() const {
  return db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_.get());
}

bool Database::is_empty() {
  Statement count;
  return count.prepare(db_.get(), "SELECT count(*) FROM sqlite_schema") == SQLITE_OK &&
         count.step() == SQLITE_ROW && count.integer(0) == 0;
}

int Statement::prepare(sqlite3 *db, std::string_view sql) {
  sqlite3_stmt *stmt = nullptr;
  const int result =
      sqlite3_prepare_v3(db, sql.data(), static_cast<int>(sql.size()), 0, &stmt, nullptr);
  stmt_.reset(stmt);
  return result;
}

void Statement::bind(int at, std::string_view value) noexcept {
  sqlite3_bind_text64(stmt_.get(), at, value.data() == nullptr ? "" : value.data(), value.size(),
                      SQLITE_STATIC, SQLITE_UTF8);
}

std::string_view Statement::text(int column) const noexcept {
  const auto *p = reinterpret_cast<const char *>(sqlite3_column_text(stmt_.get(), column));
  return p == nullptr ? std::string_view()
                      : std::string_view(
                            p, static_cast<std::size_t>(sqlite3_column_bytes(stmt_.get(), column)));
}

std::string_view Statement::blob(int column) const noexcept {
  const auto *p = static_cast<const char *>(sqlite3_column_blob(stmt_.get(), column));
  return p == nullptr ? std::string_view()
                      : std::string_view(
                            p, static_cast<std::size_t>(sqlite3_column_bytes(stmt_.get(), column)));
}

}  // namespace record_store
