#include "record-store/verify.hpp"

#include <bulkhead/cpp/text.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "record-store/schema.hpp"

namespace record_store {
namespace {

constexpr std::size_t max_notes = 200;

struct Checkpoint {
  std::uint64_t seq = 0;
  std::string head, statement, instance, key, signature;
  std::uint64_t signed_at = 0;
};

struct Cursor {
  std::string table;
  Statement rows;
  int columns = 0;
  std::uint64_t seq = 0;  // seq of the current row; 0 at the end of the table
  std::int64_t id = 0;
};

class Walk {
 public:
  explicit Walk(const VerifyOptions &options) : options_(options) {}

  VerifyReport run(const std::vector<SegmentFile> &files) {
    for (const SegmentFile &file : files) {
      if (!walk(file, &file == &files.back())) return std::move(report_);
      ++report_.files;
    }
    check_end(files);
    check_dropped();
    if (report_.broken.empty()) report_.broken = later_;
    report_.unsigned_rows = head_.seq - std::min(head_.seq, signed_seq_);
    return std::move(report_);
  }

 private:
  bool broken(std::string text) {
    report_.broken = name_ + ": " + std::move(text);
    return false;
  }
  void note(std::string text) {
    if (report_.notes.size() < max_notes) report_.notes.push_back(name_ + ": " + std::move(text));
  }

  bool walk(const SegmentFile &file, bool last) {
    name_ = file.path;
    Database db;
    const Bound bound;
    if (db.open(file.path, SQLITE_OPEN_READONLY) != SQLITE_OK || !trust_nothing(db, bound) ||
        db.run("BEGIN; SELECT count(*) FROM sqlite_schema") != SQLITE_OK) {
      // A new file has a rollback journal until it switches to WAL mode. A leftover journal
      // therefore means that the creation was interrupted.
      const bool journal = ::access((file.path + "-journal").c_str(), F_OK) == 0;
      if (last && options_.whole_chain && journal &&
          (sqlite3_extended_errcode(db.get()) & 0xff) == SQLITE_READONLY) {
        note("is empty: its creation was interrupted");
        return true;
      }
      return broken("cannot be read as a database: " + db.message());
    }
    // If signed rows are missing, this is detected at the end of the chain.
    if (last && options_.whole_chain && db.is_empty()) {
      note("is empty: its creation was interrupted");
      return true;
    }
    Schema schema;
    if (!read_schema(db, &schema)) return false;
    if (!schema.tables.empty()) return broken(schema.tables);
    if (!begin(db, file) || !read_checkpoints(db) || !open_cursors(db)) return false;
    // If the last row of the previous file was signed after this file had been created, its
    // checkpoints may be in this file.
    if (!check_checkpoints()) return false;
    while (Cursor *row = next()) {
      if (!check(*row) || !advance(row)) return false;
    }
    if (checkpoint_ < checkpoints_.size()) {
      return broken("row seq " + std::to_string(checkpoints_[checkpoint_].seq) +
                    " is missing: a checkpoint was signed for it, but the file ends at seq " +
                    std::to_string(head_.seq));
    }
    cursors_.clear();
    // This error is reported only if there is no other error, because an error about a changed row
    // is more specific.
    if (!schema.others.empty() && later_.empty()) later_ = name_ + ": " + schema.others;
    return check_pages(db);
  }

  // Protects against untrusted files: code in the file's schema is not executed, and time and
  // memory are limited.
  struct Bound {
    std::chrono::steady_clock::time_point end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(VerifyOptions::max_ms);
  };
  static bool trust_nothing(Database &db, const Bound &bound) {
    constexpr int steps_between_looks = 10'000;
    sqlite3_limit(db.get(), SQLITE_LIMIT_LENGTH, VerifyOptions::max_value_bytes);
    sqlite3_progress_handler(
        db.get(), steps_between_looks,
        [](void *of) {
          const auto &it = *static_cast<const Bound *>(of);
          return std::chrono::steady_clock::now() >= it.end ? 1 : 0;
        },
        const_cast<Bound *>(&bound));
    return sqlite3_db_config(db.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr) == SQLITE_OK &&
           sqlite3_db_config(db.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr) == SQLITE_OK;
  }

  // The first differences from schema_sql() for the version of the file. Empty if there are none.
  struct Schema {
    std::string tables, others;  // others: indexes and triggers, which do not affect stored rows
  };
  using Objects = std::map<std::string, std::string>;  // maps type and name to table and SQL

  static int read_objects(sqlite3 *db, Objects *out) {
    Statement rows;
    // Ignores the tables that ANALYZE creates, because they contain no recorded rows.
    int result = rows.prepare(db,
                              "SELECT type || ' ' || name, tbl_name || ': ' || coalesce(sql, '') "
                              "FROM sqlite_schema WHERE name NOT GLOB 'sqlite_stat[0-9]'");
    if (result != SQLITE_OK) return result;
    while ((result = rows.step()) == SQLITE_ROW) {
      out->insert_or_assign(std::string(rows.text(0)), std::string(rows.text(1)));
    }
    return result == SQLITE_DONE ? SQLITE_OK : result;
  }

  // Checks that the file has the expected schema, because the queries depend on it.
  bool read_schema(Database &db, Schema *out) {
    Objects own, theirs;
    if (read_objects(db.get(), &theirs) != SQLITE_OK) {
      return broken("cannot read the schema: " + db.message());
    }
    if (!theirs.contains("table audit_segment")) {
      return broken("is not a session database file (audit_segment)");
    }
    int version = 0;
    if (read_schema_version(db.get(), &version) != SQLITE_OK) {
      return broken("cannot read the schema version: " + db.message());
    }
    if (schema_sql(version).empty()) {
      return broken("cannot be verified: it has schema version " + std::to_string(version) +
                    ", which this program does not read");
    }
    Database empty;
    if (empty.open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) != SQLITE_OK ||
        empty.run(schema_sql(version).c_str()) != SQLITE_OK ||
        read_objects(empty.get(), &own) != SQLITE_OK) {
      return broken("cannot create the schema for the comparison: " + empty.message());
    }
    const auto differs = [&](const std::string &object, std::string_view how) {
      const bool table = object.starts_with("table ") || object.starts_with("view ");
      std::string &text = table ? out->tables : out->others;
      if (text.empty()) text = object + " " + std::string(how) + ", so query results may be wrong";
    };
    for (const auto &[object, sql] : own) {
      const auto at = theirs.find(object);
      if (at == theirs.end())
        differs(object, "of the schema is missing");
      else if (at->second != sql)
        differs(object, "of the schema was changed");
    }
    for (const auto &[object, sql] : theirs) {
      if (!own.contains(object)) differs(object, "is not part of the schema");
    }
    return true;
  }

  // Detects damaged pages and incomplete indexes, because such damage can hide rows from queries.
  bool check_pages(Database &db) {
    Statement check;
    if (check.prepare(db.get(), "PRAGMA integrity_check(1)") != SQLITE_OK ||
        check.step() != SQLITE_ROW) {
      return broken("cannot check the pages: " + db.message());
    }
    return check.text(0) == "ok" || broken("its pages are damaged: " + std::string(check.text(0)));
  }

  // Checks that the predecessor stored in the file is the last row of the previous file.
  bool begin(Database &db, const SegmentFile &file) {
    Statement segment;
    if (segment.prepare(db.get(),
                        "SELECT chain, number, previous_seq, previous_hash FROM audit_segment") !=
            SQLITE_OK ||
        segment.step() != SQLITE_ROW) {
      return broken("is not a session database file (audit_segment): " + db.message());
    }
    const bool renamed = segment.integer(0) != file.chain || segment.integer(1) != file.number;
    if (options_.whole_chain && renamed) {
      return broken("was renamed: it is number " + std::to_string(segment.integer(1)) +
                    " of chain " + std::to_string(segment.integer(0)));
    }
    chain_ = static_cast<std::uint32_t>(segment.integer(0));
    Head start;
    start.seq = static_cast<std::uint64_t>(segment.integer(2));
    const std::string_view hash = segment.blob(3);
    if (hash.size() != start.hash.size()) return broken("has a damaged row in audit_segment");
    hash.copy(reinterpret_cast<char *>(start.hash.data()), start.hash.size());
    if (!last_number_.has_value()) {
      report_.first_seq = start.seq + 1;
      if (start.seq != 0) before_first(file, start);
    } else if (file.number != *last_number_ + 1) {
      return broken("the preceding file, number " + std::to_string(*last_number_ + 1) +
                    ", is missing");
    } else if (start.seq != head_.seq || start.hash != head_.hash) {
      return broken("does not continue the preceding file: that file ends at seq " +
                    std::to_string(head_.seq) + ", but this file begins after seq " +
                    std::to_string(start.seq) +
                    (start.seq == head_.seq ? " with a different hash" : ""));
    }
    last_number_ = file.number;
    head_ = start;
    check_known(start);
    return report_.broken.empty();
  }

  bool read_checkpoints(Database &db) {
    checkpoints_.clear();
    checkpoint_ = 0;
    Statement rows;
    if (rows.prepare(db.get(),
                     "SELECT seq, head, statement, instance, signed_at, public_key, signature "
                     "FROM audit_checkpoints ORDER BY seq, id") != SQLITE_OK) {
      return broken("has no audit_checkpoints: " + db.message());
    }
    int result;
    while ((result = rows.step()) == SQLITE_ROW) {
      Checkpoint one;
      one.seq = static_cast<std::uint64_t>(rows.integer(0));
      one.head = rows.blob(1);
      one.statement = rows.text(2);
      one.instance = rows.text(3);
      one.signed_at = static_cast<std::uint64_t>(rows.integer(4));
      one.key = rows.blob(5);
      one.signature = rows.blob(6);
      checkpoints_.push_back(std::move(one));
    }
    return result == SQLITE_DONE || broken("audit_checkpoints cannot be read: " + db.message());
  }

  bool open_cursors(Database &db) {
    cursors_.clear();
    for (const std::string_view table : chained_tables) {
      auto &cursor = *cursors_.emplace_back(std::make_unique<Cursor>());
      cursor.table = table;
      if (cursor.rows.prepare(db.get(), "SELECT * FROM " + cursor.table + " ORDER BY id") !=
          SQLITE_OK) {
        return broken("table " + cursor.table + " cannot be read: " + db.message());
      }
      cursor.columns = sqlite3_column_count(cursor.rows.get());
      if (cursor.columns < 4) return broken("table " + cursor.table + " lacks columns");
      if (!advance(&cursor)) return false;
    }
    return true;
  }

  bool advance(Cursor *cursor) {
    const int result = cursor->rows.step();
    cursor->seq = 0;
    if (result == SQLITE_DONE) return true;
    if (result != SQLITE_ROW) {
      return broken("table " + cursor->table + " cannot be read after id " +
                    std::to_string(cursor->id) + ": " +
                    sqlite3_errmsg(sqlite3_db_handle(cursor->rows.get())));
    }
    cursor->id = cursor->rows.integer(0);
    const std::int64_t seq = cursor->rows.integer(cursor->columns - 3);
    if (seq <= 0) return broken(where(*cursor) + " has no valid seq");
    cursor->seq = static_cast<std::uint64_t>(seq);
    return true;
  }

  Cursor *next() {
    Cursor *first = nullptr;
    for (const auto &cursor : cursors_) {
      if (cursor->seq == 0) continue;
      if (first == nullptr || cursor->seq < first->seq) first = cursor.get();
    }
    return first;
  }

  static std::string where(const Cursor &row) {
    return row.table + " id " + std::to_string(row.id) + " (seq " + std::to_string(row.seq) + ")";
  }

  bool check(const Cursor &row) {
    const std::uint64_t expected = head_.seq + 1;
    if (row.seq > expected) {
      return broken("row seq " + std::to_string(expected) + " is missing: the next row is " +
                    where(row));
    }
    if (row.seq < expected) return broken(where(row) + " has a duplicate seq");
    if (row.rows.blob(row.columns - 2) != bytes_of(head_.hash)) {
      return broken(where(row) + " does not match the preceding row: one of the two was changed");
    }
    hash_.begin(row.table);
    for (int i = 0; i < row.columns - 1; ++i) hash_.column(row.rows.get(), i);
    const Hash own = hash_.finish();
    if (row.rows.blob(row.columns - 1) != bytes_of(own)) {
      return broken(where(row) + " was changed: its hash does not match its content");
    }
    head_.seq = row.seq;
    head_.hash = own;
    ++report_.rows;
    if (row.table == "audit_marks") note_mark(row);
    check_known(head_);
    return report_.broken.empty() && check_checkpoints();
  }

  // Called if the first row of the chain is missing. When retention removes a file, it writes a
  // mark that describes the last row of that file.
  void before_first(const SegmentFile &file, const Head &start) {
    note("the rows before seq " + std::to_string(start.seq + 1) + " are missing");
    if (!options_.whole_chain) return;
    dropped_file_ = segment_name(chain_, file.number - 1);
    dropped_end_ = dropped_text(start);
  }

  void check_dropped() {
    if (dropped_file_.empty() || !report_.broken.empty()) return;
    name_ = dropped_file_;
    broken(
        "is missing, as are all files before it, and no `dropped` mark records that retention "
        "removed this file");
  }

  void note_mark(const Cursor &row) {
    const std::string_view kind = row.rows.text(2);
    const std::string_view detail = row.rows.text(3);
    if (kind == "dropped" && !dropped_file_.empty() && detail.starts_with(dropped_file_ + " ") &&
        detail.ends_with(dropped_end_)) {
      dropped_file_.clear();
    }
    if (kind != "gap" && kind != "lost" && kind != "unclean" && kind != "dropped") return;
    note(std::string(row.rows.text(1)) + " " + std::string(kind) + ": " +
         std::string(row.rows.text(3)));
  }

  // Checks those of this file's checkpoints that belong to the row that was just verified.
  bool check_checkpoints() {
    for (; checkpoint_ < checkpoints_.size() && checkpoints_[checkpoint_].seq <= head_.seq;
         ++checkpoint_) {
      const Checkpoint &one = checkpoints_[checkpoint_];
      const std::string what = "the checkpoint for seq " + std::to_string(one.seq);
      if (one.seq < head_.seq) return broken(what + " is for a row before this file");
      if (one.head != bytes_of(head_.hash) ||
          one.statement != checkpoint_statement(chain_, head_)) {
        return broken(what + " does not match the row: the rows up to it were rewritten");
      }
      if (report_.instance.empty()) report_.instance = one.instance;
      const std::string &instance =
          options_.instance.empty() ? report_.instance : options_.instance;
      if (one.instance != instance) {
        return broken(what + " is for the instance \"" + one.instance + "\", not for \"" +
                      instance + "\"");
      }
      if (!options_.public_key.empty() &&
          (one.key != options_.public_key ||
           !signature_fits(signed_message(one.instance, one.signed_at, one.statement), one.key,
                           one.signature))) {
        return broken(what + " has no valid signature of this key");
      }
      ++report_.checkpoints;
      signed_seq_ = head_.seq;
    }
    return true;
  }

  // Checks the row that was verified last against the supervisor's list of signed checkpoints.
  void check_known(const Head &head) {
    if (options_.known.empty()) return;
    const auto [first, last] = std::equal_range(
        options_.known.begin(), options_.known.end(), KnownCheckpoint{head.seq, {}, 0},
        [](const KnownCheckpoint &a, const KnownCheckpoint &b) { return a.seq < b.seq; });
    for (auto at = first; at != last; ++at) {
      if (at->head == bh::hex(bytes_of(head.hash))) continue;
      broken("row seq " + std::to_string(head.seq) +
             " does not match the supervisor's checkpoint: the rows up to it were rewritten");
      return;
    }
  }

  void check_end(const std::vector<SegmentFile> &files) {
    if (!options_.to_the_end || files.empty() || options_.known.empty()) return;
    const KnownCheckpoint &last = options_.known.back();
    if (last.seq <= head_.seq) return;
    broken("row seq " + std::to_string(head_.seq + 1) +
           " is missing: the supervisor has signed the rows up to seq " + std::to_string(last.seq));
  }

  const VerifyOptions &options_;
  VerifyReport report_;
  std::string name_;
  std::uint32_t chain_ = 0;
  std::optional<std::uint32_t> last_number_;
  std::string later_;  // reported if there is no other error
  // Strings that a `dropped` mark must contain. dropped_file_ is empty if no mark is required or
  // the mark has been found.
  std::string dropped_file_, dropped_end_;
  Head head_;
  RowHash hash_;
  std::uint64_t signed_seq_ = 0;
  std::vector<Checkpoint> checkpoints_;
  std::size_t checkpoint_ = 0;
  std::vector<std::unique_ptr<Cursor>> cursors_;
};

}  // namespace

VerifyReport verify_chain(const std::vector<SegmentFile> &files, const VerifyOptions &options) {
  return Walk(options).run(files);
}

}  // namespace record_store
