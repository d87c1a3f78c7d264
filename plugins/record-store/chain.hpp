// Reads and extends the hash chain, and verifies its signatures. Each row contains its own hash
// (`hash`) and the hash of its predecessor (`prev`). A row's hash is the SHA-256 of the table name
// and all other columns, in order. The rows of all chained tables form a single chain, which is
// ordered by `seq`.
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

// Computes the hashes of rows, one at a time. For each row, call begin() with the name of its
// table, add all columns except `hash`, and call finish().
class RowHash {
 public:
  void begin(std::string_view table);
  void null();
  void integer(std::int64_t value);
  void real(double value);
  void text(std::string_view value);
  void blob(std::string_view value);
  void column(sqlite3_stmt *row, int column);  // uses the storage class of the value in the file
  Hash finish();

 private:
  static constexpr std::size_t max_kept_bytes = 1u << 20;

  void number(char kind, std::uint64_t value);
  void bytes(char kind, std::string_view value);
  std::string row_;  // hashed in one step; the memory is reused for the next row
};

struct Head {
  std::uint64_t seq = 0;     // seq of the last row; 0 if the chain is empty
  std::int64_t call_id = 0;  // id of the last row of mcp_calls
  Hash hash{};
};

// Reads the last row of the chain from an open file. If the file has no rows, reads the stored
// predecessor of its first row. If the file has another schema_version, the later_tables may be
// missing. Returns SQLite's result code.
int read_head(sqlite3 *db, Head *out);
// Reads the schema_version of the file. Returns SQLite's result code.
int read_schema_version(sqlite3 *db, int *out);

// Inserts rows into one table. For each row, call begin(), add all columns except seq, prev and
// hash in order, and call finish().
class ChainedInsert {
 public:
  // `columns` lists all columns of the table except seq, prev and hash. Returns SQLite's result
  // code.
  int prepare(sqlite3 *db, std::string_view table, std::string_view columns);
  void begin();
  void null();
  void integer(std::int64_t value);
  void text(std::string_view value);  // borrowed until finish() returns
  void text_or_null(std::string_view value) { value.empty() ? null() : text(value); }
  // Returns SQLITE_DONE and updates the seq and the hash of *head if the row was inserted.
  // Otherwise, no row was inserted, and *head is unchanged.
  int finish(Head *head);

 private:
  Statement insert_;
  std::string table_;
  RowHash hash_;
  int at_ = 0;
};

// Returns the statement that the supervisor signs for a checkpoint.
std::string checkpoint_statement(std::uint32_t chain, const Head &head);
// Describes the last row of a removed file. The detail text of a `dropped` mark ends with this
// description.
std::string dropped_text(const Head &last);
// Returns the bytes that are signed: the statement with the instance and the time.
std::string signed_message(std::string_view instance, std::uint64_t unix_s,
                           std::string_view statement);
bool signature_fits(std::string_view message, std::string_view key, std::string_view signature);

}  // namespace record_store
