// The chain: each row carries the hash of its predecessor (`prev`) and its own (`hash`), SHA-256 of
// the table's name and all other columns in their order. Rows of several tables are one chain, by
// `seq`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record-store/database.hpp"
#include "record-store/sha256.hpp"

namespace record_store {

inline std::string_view bytes_of(const Hash &hash) noexcept {
  return {reinterpret_cast<const char *>(hash.data()), hash.size()};
}
std::string hex_of(std::string_view bytes);

// Hashes rows, one after the other: begin() with its table, then every column but `hash`.
class RowHash {
 public:
  void begin(std::string_view table);
  void null();
  void integer(std::int64_t value);
  void real(double value);
  void text(std::string_view value);
  void blob(std::string_view value);
  void column(sqlite3_stmt *row, int column);  // as it lies in the file
  Hash finish();

 private:
  static constexpr std::size_t max_kept_bytes = 1u << 20;

  void number(char kind, std::uint64_t value);
  void bytes(char kind, std::string_view value);
  std::string row_;  // hashed as one piece; its memory serves the next row as well
};

struct Head {
  std::uint64_t seq = 0;     // of the last row; 0: there is none
  std::int64_t call_id = 0;  // of the last row of mcp_calls
  Hash hash{};
};

// The last row of an open file's chain, or what its first row will follow. A file of another
// schema_version need not have the later_tables. SQLite's result code.
int read_head(sqlite3 *db, Head *out);
// The record_store::schema_version that the file was made with. An SQLite result code.
int read_schema_version(sqlite3 *db, int *out);

// Inserts rows of one table: the columns without seq, prev and hash in their order, then finish().
class ChainedInsert {
 public:
  // columns: all of the table but the last three. SQLite's result code.
  int prepare(sqlite3 *db, std::string_view table, std::string_view columns);
  void begin();
  void null();
  void integer(std::int64_t value);
  void text(std::string_view value);  // borrowed until finish() returns
  void text_or_null(std::string_view value) { value.empty() ? null() : text(value); }
  // SQLITE_DONE: *head is this row; else nothing was inserted, and *head is as before.
  int finish(Head *head);

 private:
  Statement insert_;
  std::string table_;
  RowHash hash_;
  int at_ = 0;
};

// What the supervisor is asked to sign, and what its signature covers.
std::string checkpoint_statement(std::uint32_t chain, const Head &head);
// The end of what a `dropped` mark says of a file whose last row this was.
std::string dropped_text(const Head &last);
std::string signed_message(std::string_view instance, std::uint64_t unix_s,
                           std::string_view statement);
bool signature_fits(std::string_view message, std::string_view key, std::string_view signature);

}  // namespace record_store
