#include "record-store/chain.hpp"

#include <bulkhead/cpp/text.hpp>

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "record-store/schema.hpp"

namespace record_store {
namespace {

constexpr int last_columns = 3;  // seq, prev, hash

bool has_table(sqlite3 *db, std::string_view name) {
  Statement table;
  if (table.prepare(db, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?") !=
      SQLITE_OK) {
    return true;  // the next read reports the error
  }
  table.bind(1, name);
  return table.step() != SQLITE_DONE;
}

// Returns true if the table is missing but is allowed to be, because the file has another schema
// version and not all versions have the table.
bool may_lack(sqlite3 *db, int schema, std::string_view table) {
  return schema != schema_version && std::ranges::find(later_tables, table) != later_tables.end() &&
         !has_table(db, table);
}

}  // namespace

void RowHash::begin(std::string_view table) {
  if (row_.capacity() > max_kept_bytes) row_ = std::string();
  row_.clear();
  text(table);
}

// Each value is encoded with its type and, if its size varies, its length. As a result, different
// rows have different encodings.
void RowHash::number(char kind, std::uint64_t value) {
  char out[9];
  out[0] = kind;
  for (int i = 0; i < 8; ++i) out[1 + i] = static_cast<char>(value >> (8 * i));
  row_.append(out, sizeof out);
}

void RowHash::bytes(char kind, std::string_view value) {
  number(kind, value.size());
  row_.append(value);
}

void RowHash::null() {
  row_ += 'n';
}

void RowHash::integer(std::int64_t value) {
  number('i', static_cast<std::uint64_t>(value));
}

void RowHash::real(double value) {
  std::uint64_t bits;
  static_assert(sizeof bits == sizeof value);
  std::memcpy(&bits, &value, sizeof value);
  number('r', bits);
}

void RowHash::text(std::string_view value) {
  bytes('t', value);
}

void RowHash::blob(std::string_view value) {
  bytes('b', value);
}

void RowHash::column(sqlite3_stmt *row, int column) {
  const auto view = [&](const void *p) {
    return std::string_view(
        static_cast<const char *>(p),
        p == nullptr ? 0 : static_cast<std::size_t>(sqlite3_column_bytes(row, column)));
  };
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
      return integer(sqlite3_column_int64(row, column));
    case SQLITE_FLOAT:
      return real(sqlite3_column_double(row, column));
    case SQLITE_TEXT:
      return text(view(sqlite3_column_text(row, column)));
    case SQLITE_BLOB:
      return blob(view(sqlite3_column_blob(row, column)));
    default:
      return null();
  }
}

Hash RowHash::finish() {
  return sha256(row_);
}

int read_head(sqlite3 *db, Head *out) {
  *out = Head{};
  Statement segment;
  int schema = 0;
  int result = read_schema_version(db, &schema);
  if (result != SQLITE_OK) return result;
  result = segment.prepare(
      db, "SELECT previous_seq, previous_hash, previous_id FROM audit_segment LIMIT 1");
  if (result == SQLITE_OK) result = segment.step();
  if (result != SQLITE_ROW) return result == SQLITE_DONE ? SQLITE_CORRUPT : result;
  out->seq = static_cast<std::uint64_t>(segment.integer(0));
  segment.blob(1).copy(reinterpret_cast<char *>(out->hash.data()), out->hash.size());
  out->call_id = segment.integer(2);
  for (const std::string_view table : chained_tables) {
    if (may_lack(db, schema, table)) continue;
    Statement last;
    result = last.prepare(
        db, "SELECT seq, hash, id FROM " + std::string(table) + " ORDER BY id DESC LIMIT 1");
    if (result == SQLITE_OK) result = last.step();
    if (result == SQLITE_DONE) continue;
    if (result != SQLITE_ROW) return result;
    if (table == "mcp_calls") out->call_id = last.integer(2);
    const auto seq = static_cast<std::uint64_t>(last.integer(0));
    if (seq <= out->seq) continue;
    out->seq = seq;
    out->hash = {};
    last.blob(1).copy(reinterpret_cast<char *>(out->hash.data()), out->hash.size());
  }
  return SQLITE_OK;
}

int read_schema_version(sqlite3 *db, int *out) {
  Statement version;
  int result = version.prepare(db, "PRAGMA user_version");
  if (result == SQLITE_OK) result = version.step();
  if (result != SQLITE_ROW) return result == SQLITE_DONE ? SQLITE_CORRUPT : result;
  *out = static_cast<int>(version.integer(0));
  return SQLITE_OK;
}

int ChainedInsert::prepare(sqlite3 *db, std::string_view table, std::string_view columns) {
  table_ = table;
  int count = last_columns + 1;
  for (const char c : columns) count += c == ',' ? 1 : 0;
  std::string sql =
      "INSERT INTO " + table_ + " (" + std::string(columns) + ", seq, prev, hash) VALUES (?";
  for (int i = 1; i < count; ++i) sql += ",?";
  return insert_.prepare(db, sql + ")");
}

void ChainedInsert::begin() {
  insert_.reset();
  hash_.begin(table_);
  at_ = 0;
}

void ChainedInsert::null() {
  sqlite3_bind_null(insert_.get(), ++at_);
  hash_.null();
}

void ChainedInsert::integer(std::int64_t value) {
  insert_.bind(++at_, value);
  hash_.integer(value);
}

void ChainedInsert::text(std::string_view value) {
  insert_.bind(++at_, value);
  hash_.text(value);
}

int ChainedInsert::finish(Head *head) {
  const auto seq = static_cast<std::int64_t>(head->seq + 1);
  insert_.bind(++at_, seq);
  hash_.integer(seq);
  sqlite3_bind_blob(insert_.get(), ++at_, head->hash.data(), static_cast<int>(head->hash.size()),
                    SQLITE_STATIC);
  hash_.blob(bytes_of(head->hash));
  const Hash own = hash_.finish();
  sqlite3_bind_blob(insert_.get(), ++at_, own.data(), static_cast<int>(own.size()), SQLITE_STATIC);
  const int result = insert_.step();
  insert_.reset();
  if (result != SQLITE_DONE) return result;
  head->seq = static_cast<std::uint64_t>(seq);
  head->hash = own;
  return result;
}

std::string checkpoint_statement(std::uint32_t chain, const Head &head) {
  return "chain " + std::to_string(chain) + " seq " + std::to_string(head.seq) + " head " +
         bh::hex(bytes_of(head.hash));
}

std::string dropped_text(const Head &last) {
  return ": its last row was seq " + std::to_string(last.seq) + " with hash " +
         bh::hex(bytes_of(last.hash));
}

std::string signed_message(std::string_view instance, std::uint64_t unix_s,
                           std::string_view statement) {
  std::string out = "bulkhead.audit/1\n";
  out.append(instance).append("\n").append(std::to_string(unix_s)).append("\n");
  return out.append(statement);
}

bool signature_fits(std::string_view message, std::string_view key, std::string_view signature) {
  if (key.size() != crypto_sign_PUBLICKEYBYTES || signature.size() != crypto_sign_BYTES) {
    return false;
  }
  const auto bytes = [](std::string_view s) {
    return reinterpret_cast<const unsigned char *>(s.data());
  };
  return crypto_sign_verify_detached(bytes(signature), bytes(message), message.size(),
                                     bytes(key)) == 0;
}

}  // namespace record_store
