#include "record-store/verify.hpp"

#include <algorithm>
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

// One table, row by row.
struct Cursor {
  std::string table;
  Statement rows;
  int columns = 0;
  std::uint64_t seq = 0;  // of the present row; 0: there is none any more
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
    if (db.open(file.path, SQLITE_OPEN_READONLY) != SQLITE_OK ||
        db.run("BEGIN; SELECT count(*) FROM sqlite_schema") != SQLITE_OK) {
      return broken("cannot be read as a database: " + db.message());
    }
    // What was in it and is signed is missed at the end.
    if (last && options_.whole_chain && db.is_empty()) {
      note("is empty: its making was cut off");
      return true;
    }
    if (!begin(db, file) || !read_checkpoints(db) || !open_cursors(db)) return false;
    while (Cursor *row = next()) {
      if (!check(*row) || !advance(row)) return false;
    }
    if (checkpoint_ < checkpoints_.size()) {
      return broken("row seq " + std::to_string(checkpoints_[checkpoint_].seq) +
                    " is missing: a checkpoint was signed for it, and the file ends at seq " +
                    std::to_string(head_.seq));
    }
    return true;
  }

  // What the file says it follows must be what came before it.
  bool begin(Database &db, const SegmentFile &file) {
    Statement segment;
    if (segment.prepare(db.get(),
                        "SELECT chain, number, previous_seq, previous_hash FROM audit_segment") !=
            SQLITE_OK ||
        segment.step() != SQLITE_ROW) {
      return broken("is no file of a session database (audit_segment): " + db.message());
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
    if (hash.size() != start.hash.size()) return broken("has a damaged start (audit_segment)");
    hash.copy(reinterpret_cast<char *>(start.hash.data()), start.hash.size());
    if (!last_number_.has_value()) {
      report_.first_seq = start.seq + 1;
      if (start.seq != 0) {
        note("the rows before seq " + std::to_string(start.seq + 1) +
             " are not there any more: dropped by retention, or removed");
      }
    } else if (file.number != *last_number_ + 1) {
      return broken("file number " + std::to_string(*last_number_ + 1) + " before it is missing");
    } else if (start.seq != head_.seq || start.hash != head_.hash) {
      return broken("does not follow the file before it: that one ends at seq " +
                    std::to_string(head_.seq) + ", and this one begins after seq " +
                    std::to_string(start.seq) +
                    (start.seq == head_.seq ? " with another hash" : ""));
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
      return broken("table " + cursor->table + " cannot be read behind id " +
                    std::to_string(cursor->id) + ": " +
                    sqlite3_errmsg(sqlite3_db_handle(cursor->rows.get())));
    }
    cursor->id = cursor->rows.integer(0);
    const std::int64_t seq = cursor->rows.integer(cursor->columns - 3);
    if (seq <= 0) return broken(where(*cursor) + " has no place in the chain");
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
      return broken("row seq " + std::to_string(expected) + " is missing: " + where(row) +
                    " comes next");
    }
    if (row.seq < expected) return broken(where(row) + " is a second row of that place");
    if (row.rows.blob(row.columns - 2) != bytes_of(head_.hash)) {
      return broken(where(row) + " does not follow the row before it: one of the two was changed");
    }
    RowHash hash(row.table);
    for (int i = 0; i < row.columns - 1; ++i) hash.column(row.rows.get(), i);
    const Hash own = hash.finish();
    if (row.rows.blob(row.columns - 1) != bytes_of(own)) {
      return broken(where(row) + " was changed: its hash does not fit its content");
    }
    head_.seq = row.seq;
    head_.hash = own;
    ++report_.rows;
    if (row.table == "audit_marks") note_mark(row);
    check_known(head_);
    return report_.broken.empty() && check_checkpoints();
  }

  void note_mark(const Cursor &row) {
    const std::string_view kind = row.rows.text(2);
    if (kind != "gap" && kind != "lost" && kind != "unclean" && kind != "dropped") return;
    note(std::string(row.rows.text(1)) + " " + std::string(kind) + ": " +
         std::string(row.rows.text(3)));
  }

  // The checkpoints of this file for the row that was just checked.
  bool check_checkpoints() {
    for (; checkpoint_ < checkpoints_.size() && checkpoints_[checkpoint_].seq <= head_.seq;
         ++checkpoint_) {
      const Checkpoint &one = checkpoints_[checkpoint_];
      const std::string what = "the checkpoint for seq " + std::to_string(one.seq);
      if (one.seq < head_.seq) return broken(what + " is for a row of another file");
      if (one.head != bytes_of(head_.hash) ||
          one.statement != checkpoint_statement(chain_, head_)) {
        return broken(what + " is for another row: the rows up to there were written anew");
      }
      if (!options_.public_key.empty() &&
          (one.key != options_.public_key ||
           !signature_fits(signed_message(one.instance, one.signed_at, one.statement), one.key,
                           one.signature))) {
        return broken(what + " is not signed by this key");
      }
      ++report_.checkpoints;
      signed_seq_ = head_.seq;
    }
    return true;
  }

  // What the supervisor has signed, by its own list.
  void check_known(const Head &head) {
    if (options_.known.empty()) return;
    const auto [first, last] = std::equal_range(
        options_.known.begin(), options_.known.end(), KnownCheckpoint{head.seq, {}, 0},
        [](const KnownCheckpoint &a, const KnownCheckpoint &b) { return a.seq < b.seq; });
    for (auto at = first; at != last; ++at) {
      if (at->head == hex_of(bytes_of(head.hash))) continue;
      broken("row seq " + std::to_string(head.seq) +
             " is not the one that the supervisor has signed: the rows up to there were written "
             "anew");
      return;
    }
  }

  void check_end(const std::vector<SegmentFile> &files) {
    if (!options_.whole_chain || files.empty() || options_.known.empty()) return;
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
  Head head_;
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
