// The hash chain: each row has the hash of its predecessor (`prev`) and its own hash (`hash`),
// SHA-256 of the table's name and all other columns in order. Rows of all chained tables are one
// chain, ordered by `seq`.
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

// Hashes one row after the other: begin() with its table, then every column except `hash`.
class RowHash {
 public:
  void begin(std::string_view table);
  void null();
  void integer(std::int64_t value);
  void real(double value);
  void text(std::string_view value);
  void blob(std::string_view value);
  void column(sqlite3_stmt *row, int column);  // with the storage class in the file
  Hash finish();

 private:
  static constexpr std::size_t max_kept_bytes = 1u << 20;

  void number(char kind, std::uint64_t value);
  void bytes(char kind, std::string_view value);
  std::string row_;  // hashed as one piece; its memory is reused for the next row
};

struct Head {
  std::uint64_t seq = 0;     // of the last row; 0: the chain is empty
  std::int64_t call_id = 0;  // of the last row of mcp_calls
  Hash hash{};
};

// Reads the last row of an open file's chain, or the predecessor of its first row. A file of
// another schema_version may lack the later_tables. Returns SQLite's result code.
int read_head(sqlite3 *db, Head *out);
// Reads the schema_version of the file. Returns SQLite's result code.
int read_schema_version(sqlite3 *db, int *out);

// Inserts rows of one table: all columns except seq, prev and hash in order, then finish().
class ChainedInsert {
 public:
  // columns: all columns of the table except the last three. Returns SQLite's result code.
  int prepare(sqlite3 *db, std::string_view table, std::string_view columns);
  void begin();
  void null();
  void integer(std::int64_t value);
  void text(std::string_view value);  // borrowed until finish() returns
  void text_or_null(std::string_view value) { value.empty() ? null() : text(value); }
  // SQLITE_DONE: *head is this row. Otherwise nothing was inserted, and *head is unchanged.
  int finish(Head *head);

 private:
  Statement insert_;
  std::string table_;
  RowHash hash_;
  int at_ = 0;
};

// The statement of a checkpoint that the supervisor signs.
std::string checkpoint_statement(std::uint32_t chain, const Head &head);
// The end of a `dropped` mark's detail: the last row of the removed file.
std::string dropped_text(const Head &last);
std::string signed_message(std::string_view instance, std::uint64_t unix_s,
                           std::string_view statement);
bool signature_fits(std::string_view message, std::string_view key, std::string_view signature);

}  // namespace record_store
