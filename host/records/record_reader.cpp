#include "records/record_reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"
#include "mcp/scan.hpp"
#include "record-store/chain.hpp"
#include "record-store/schema.hpp"
#include "records/sqlite_on_demand.hpp"

namespace bulkhead::program {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t heap_bytes = 512 << 20;
constexpr int value_bytes = 16 << 20;  // limit for a value and for the text of a statement
constexpr std::uint64_t smallest_made = 1 << 20;  // larger files are never empty
constexpr int steps_between_looks = 1'000;

const char *action_name(int action) {
  switch (action) {
    case SQLITE_INSERT:
      return "INSERT";
    case SQLITE_UPDATE:
      return "UPDATE";
    case SQLITE_DELETE:
      return "DELETE";
    case SQLITE_PRAGMA:
      return "PRAGMA";
    case SQLITE_ATTACH:
      return "ATTACH";
    case SQLITE_DETACH:
      return "DETACH";
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
      return "a transaction";
    case SQLITE_FUNCTION:
      return "this function";
    default:
      return "this statement";
  }
}

// An SQLite authorizer that only permits reading.
struct Guard {
  int refused = 0;
  Clock::time_point end;

  static int authorize(void *self, int action, const char *, const char *name, const char *,
                       const char *) {
    const bool reads = action == SQLITE_SELECT || action == SQLITE_READ ||
                       action == SQLITE_RECURSIVE ||
                       (action == SQLITE_FUNCTION && name != nullptr &&
                        std::string_view(name) != "load_extension");
    if (reads) return SQLITE_OK;
    auto &guard = *static_cast<Guard *>(self);
    if (guard.refused == 0) guard.refused = action;
    return SQLITE_DENY;
  }
  static int look(void *self) { return Clock::now() >= static_cast<Guard *>(self)->end ? 1 : 0; }
};

class Guarded {
 public:
  explicit Guarded(sqlite3 *db) : db_(db) {
    guard_.end = Clock::now() + std::chrono::milliseconds(RecordReader::max_ms);
    sqlite3_set_authorizer(db, Guard::authorize, &guard_);
    sqlite3_progress_handler(db, steps_between_looks, Guard::look, &guard_);
  }
  ~Guarded() {
    sqlite3_set_authorizer(db_, nullptr, nullptr);
    sqlite3_progress_handler(db_, 0, nullptr, nullptr);
  }
  Guarded(const Guarded &) = delete;
  Guarded &operator=(const Guarded &) = delete;
  int refused() const noexcept { return guard_.refused; }

 private:
  sqlite3 *db_;
  Guard guard_;
};

std::string failure(sqlite3 *db, int result, const Guarded &guarded) {
  if (guarded.refused() != 0) {
    return std::string(action_name(guarded.refused())) +
           " is not allowed: only SELECT, WITH and EXPLAIN queries can run";
  }
  if (result == SQLITE_INTERRUPT) {
    return "the query timed out after " + std::to_string(RecordReader::max_ms / 1000) +
           " s; narrow the query, for example by timestamp";
  }
  return std::string("SQL: ") + sqlite3_errmsg(db) +
         "; `bulkhead inspect --schema` prints the tables";
}

// Returns the reason why a file cannot be read together with others, or an empty string if it can.
std::string why_alone(record_store::Database &db) {
  record_store::Statement id;
  int schema = 0;
  if (id.prepare(db.get(), "PRAGMA application_id") != SQLITE_OK || id.step() != SQLITE_ROW) {
    return db.message();
  }
  if (id.integer(0) != record_store::application_id) return "is not a session database file";
  if (record_store::read_schema_version(db.get(), &schema) != SQLITE_OK) return db.message();
  if (!record_store::schema_sql(schema).empty()) return {};
  return "has schema version " + std::to_string(schema) + ", but this program reads " +
         std::to_string(record_store::oldest_schema_version) + " to " +
         std::to_string(record_store::schema_version);
}

// Returns the list of columns to select from a table in an older file so that the result has the
// current schema. Returns an empty string if the table already has the current schema.
std::string older_columns(record_store::Database &db, const std::string &file,
                          std::string_view table) {
  std::vector<std::string_view> missing;
  for (const auto &later : record_store::later_columns) {
    if (later.table == table) missing.push_back(later.column);
  }
  if (missing.empty()) return {};
  record_store::Statement rows;
  const std::string sql = "PRAGMA " + file + ".table_info(" + std::string(table) + ")";
  if (rows.prepare(db.get(), sql) != SQLITE_OK) return {};
  std::string out;
  while (rows.step() == SQLITE_ROW) {
    const std::string_view name = rows.text(1);
    std::erase(missing, name);
    if (name == "seq") {
      if (missing.empty()) return {};
      for (const std::string_view column : missing) out.append(", NULL AS ").append(column);
    }
    out.append(out.empty() ? "\"" : ", \"").append(name).append("\"");
  }
  return out;
}

std::string view_sql(record_store::Database &db, std::string_view table, std::size_t files) {
  std::string out = "CREATE TEMP VIEW " + std::string(table) + " AS ";
  for (std::size_t i = 0; i < files; ++i) {
    const std::string file = i == 0 ? "main" : "f" + std::to_string(i);
    const std::string columns = older_columns(db, file, table);
    out.append(i == 0 ? "SELECT " : " UNION ALL SELECT ").append(columns.empty() ? "*" : columns);
    out.append(" FROM ").append(file).append(".").append(table);
  }
  return out;
}

}  // namespace

std::vector<record_store::SegmentFile> RecordReader::usable(
    std::vector<record_store::SegmentFile> files, std::vector<std::string> *left_out) {
  if (files.size() < 2 || !load_sqlite()) return files;  // open() reports a missing library
  std::erase_if(files, [&](const record_store::SegmentFile &file) {
    record_store::Database db;
    if (::access(file.path.c_str(), F_OK) != 0) return true;
    const bool opened = db.open(file.path, SQLITE_OPEN_READONLY) == SQLITE_OK;
    if (opened && file.bytes < smallest_made && db.is_empty()) return true;
    const std::string why = opened ? why_alone(db) : db.message();
    if (!why.empty()) left_out->push_back(file.path + ": " + why);
    return !why.empty();
  });
  return files;
}

Result<RecordReader> RecordReader::open(const std::vector<record_store::SegmentFile> &all) {
  RecordReader out;
  const std::vector<record_store::SegmentFile> files = usable(all, &out.left_out_);
  out.usable_ = files.size();
  const auto failed = [&](const std::string &path) {
    return fail(BH_E_IO, path + ": " + out.db_.message());
  };
  if (auto library = load_sqlite(); !library) return std::unexpected(library.error());
  sqlite3_hard_heap_limit64(heap_bytes);
  if (files.empty()) {
    return fail(BH_E_NOT_FOUND,
                out.left_out_.empty() ? "no session database file found" : out.left_out_.front());
  }
  const std::string &first = files.front().path;
  if (out.db_.open(first, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI) != SQLITE_OK) {
    return failed(first);
  }
  record_store::Statement id;
  if (id.prepare(out.db_.get(), "PRAGMA application_id") != SQLITE_OK || id.step() != SQLITE_ROW) {
    return failed(first);
  }
  if (id.integer(0) != record_store::application_id) {
    return fail(BH_E_INVALID, first + " is not a session database file");
  }
  id = {};
  sqlite3_limit(out.db_.get(), SQLITE_LIMIT_LENGTH, value_bytes);
  sqlite3_db_config(out.db_.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(out.db_.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  out.files_ = std::min(files.size(), max_files);
  if (auto attached = out.attach(files); !attached) return std::unexpected(attached.error());
  return out;
}

// Attaches all files, and makes each table name stand for the rows of all files.
Result<void> RecordReader::attach(const std::vector<record_store::SegmentFile> &files) {
  if (files_ == 1 && older_columns(db_, "main", "mcp_calls").empty()) return {};
  for (std::size_t i = 1; i < files_; ++i) {
    record_store::Statement attach;
    if (attach.prepare(db_.get(), "ATTACH ? AS f" + std::to_string(i)) != SQLITE_OK) {
      return fail(BH_E_IO, db_.message());
    }
    attach.bind(1, files[i].path);
    if (attach.step() != SQLITE_DONE) return fail(BH_E_IO, files[i].path + ": " + db_.message());
  }
  for (const std::string_view table : record_store::chained_tables) {
    if (db_.run(view_sql(db_, table, files_).c_str()) != SQLITE_OK)
      return fail(BH_E_IO, db_.message());
  }
  for (const char *table : {"audit_checkpoints", "audit_segment", "session_identity"}) {
    if (db_.run(view_sql(db_, table, files_).c_str()) != SQLITE_OK)
      return fail(BH_E_IO, db_.message());
  }
  return {};
}

Result<RecordReader::Answer> RecordReader::run(
    std::string_view sql, const std::function<void(const Answer &, sqlite3_stmt *)> &row) {
  sqlite3 *db = db_.get();
  const Guarded guarded(db);
  sqlite3_stmt *made = nullptr;
  const char *rest = nullptr;
  int result = sqlite3_prepare_v3(db, sql.data(), static_cast<int>(sql.size()), 0, &made, &rest);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt *)> statement(made, sqlite3_finalize);
  if (result != SQLITE_OK) return fail(BH_E_INVALID, failure(db, result, guarded));
  if (made == nullptr) return fail(BH_E_INVALID, "the query is empty");
  const std::string_view more(rest, static_cast<std::size_t>(sql.data() + sql.size() - rest));
  if (more.find_first_not_of(" \t\r\n;") != more.npos) {
    return fail(BH_E_INVALID, "only one query is allowed; unexpected text after the first: " +
                                  std::string(more.substr(0, 60)));
  }
  if (sqlite3_stmt_readonly(made) == 0) {
    return fail(BH_E_INVALID, "only SELECT, WITH and EXPLAIN are allowed");
  }
  Answer answer;
  const int columns = sqlite3_column_count(made);
  for (int i = 0; i < columns; ++i) {
    const char *name = sqlite3_column_name(made, i);
    answer.columns.emplace_back(name == nullptr ? "" : name);
  }
  std::size_t bytes = 0;
  while ((result = sqlite3_step(made)) == SQLITE_ROW) {
    for (int i = 0; i < columns; ++i) {
      bytes += 16 + static_cast<std::size_t>(sqlite3_column_bytes(made, i));
    }
    if (answer.rows == max_rows || bytes > max_answer_bytes) {
      answer.cut = true;
      return answer;
    }
    ++answer.rows;
    row(answer, made);
  }
  if (result != SQLITE_DONE) return fail(BH_E_INVALID, failure(db, result, guarded));
  return answer;
}

std::string text_value(sqlite3_stmt *row, int column) {
  const int type = sqlite3_column_type(row, column);
  if (type == SQLITE_NULL) return {};
  if (type == SQLITE_BLOB) {
    const auto *p = static_cast<const char *>(sqlite3_column_blob(row, column));
    return bh::hex(
        {p, p == nullptr ? 0 : static_cast<std::size_t>(sqlite3_column_bytes(row, column))});
  }
  const auto *p = reinterpret_cast<const char *>(sqlite3_column_text(row, column));
  return p == nullptr ? std::string()
                      : std::string(p, static_cast<std::size_t>(sqlite3_column_bytes(row, column)));
}

std::string sql_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += c;
    out += c;
  }
  return out + "'";
}

void append_json_value(std::string *out, sqlite3_stmt *row, int column) {
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_NULL:
      *out += "null";
      return;
    case SQLITE_INTEGER:
      *out += text_value(row, column);
      return;
    case SQLITE_FLOAT: {
      const std::string text = text_value(row, column);
      // JSON cannot represent infinity.
      *out += text.find("Inf") == text.npos ? text : "null";
      return;
    }
    default:
      bh::json::append_quoted(out, text_value(row, column));
  }
}

}  // namespace bulkhead::program
