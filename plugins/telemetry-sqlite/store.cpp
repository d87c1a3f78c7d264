#include "telemetry-sqlite/store.hpp"

#include <bulkhead/abi/ext/telemetry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bulkhead/cpp/clock.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "record-store/schema.hpp"
#include "telemetry-sqlite/time_text.hpp"

namespace telemetry_sqlite {
namespace {

using record_store::Database;
using record_store::Head;
using record_store::SegmentFile;
using record_store::Statement;

// Tables whose rows have a record number.
constexpr std::string_view numbered_tables[] = {"mcp_calls",  "call_intents", "approvals",
                                                "net_events", "fs_events",    "snapshot_events"};

// The value of open_code_ if the file is readable but has another schema version. All other values
// are SQLite result codes.
constexpr int another_schema = -1;

bool is_empty(sqlite3 *db) {
  Statement tables;
  return tables.prepare(db, "SELECT 1 FROM sqlite_schema LIMIT 1") == SQLITE_OK &&
         tables.step() == SQLITE_DONE;
}

// `code` is the result code of a statement.
bool is_page_damage(int code) {
  const int kind = code & 0xff;
  return kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB;
}

// `code` is the result code of opening a file. SQLITE_ERROR counts as damage because it means that
// a table is missing.
bool is_damage(int code) {
  return is_page_damage(code) || (code & 0xff) == SQLITE_ERROR;
}

// Returns the page size for new files. A row with its request and response takes a few kilobytes,
// so large pages halve the number of writes. But each commit rewrites at least one page of each
// table and index. In mode "full", rows may be committed one by one, so smaller pages are cheaper
// there. In small files, large pages would consist mostly of unused space.
std::uint64_t wanted_page_bytes(const Config &config) {
  constexpr std::uint64_t large_file = 16u << 20;
  if (config.segment_bytes < large_file) return 4'096;
  return config.full ? 8'192 : 32'768;
}

// Creates the file with private permissions. SQLite uses the same permissions for the WAL. If
// SQLite created the file, its permissions would depend on the umask. Must be called before SQLite
// opens the file, because closing any descriptor of the file releases SQLite's locks.
void keep_private(const std::string &path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;  // SQLite will report the error
  static_cast<void>(::fchmod(fd, 0600));
  ::close(fd);
}

bool flush_log(sqlite3 *db) {
  sqlite3_file *log = nullptr;
  return sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK &&
         log != nullptr && log->pMethods != nullptr &&
         log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) == SQLITE_OK;
}

bool passes(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_NOMEM:
      return true;
    default:
      return false;
  }
}

}  // namespace

Store::Store(std::string folder, std::uint32_t chain, std::string instance, const Config &config,
             Log log)
    : folder_(std::move(folder)),
      instance_(std::move(instance)),
      chain_(chain),
      config_(config),
      log_(std::move(log)) {}

std::string Store::open() {
  std::uint32_t last = 0;
  for (const SegmentFile &file : record_store::segment_files(folder_)) {
    if (file.chain == chain_) last = std::max(last, file.number);
  }
  head_ = {};
  ended_before_ = false;
  damage_.clear();
  carried_.clear();
  // The last file is empty if a process was killed while creating it. Recording then continues from
  // the head of the previous file.
  const bool follows = last > 1;
  if (follows) {
    if (std::string problem = read_predecessor(last - 1); !problem.empty()) return problem;
  }
  const Head before = head_;
  std::string problem = open_file(
      std::max(last, 1u), follows ? record_store::segment_name(chain_, last - 1) : std::string());
  if (problem.empty() || last == 0) return problem;
  const bool readable = open_code_ == another_schema;
  if (!readable && !is_damage(open_code_)) return problem;
  // An unreadable file is kept for inspection.
  log_(readable ? BH_LOG_INFO : BH_LOG_ERROR,
       path_ + ": " + problem + "; recording continues in a new file");
  const std::string left = path_;
  const bool unclean = !readable || unclean_;
  if (!readable) {
    head_ = before;
    head_.seq += damage_leap;
  }
  problem = open_file(last + 1, left);
  if (!problem.empty()) return problem;
  unclean_ = unclean;
  return {};
}

// Reads the head and the last rows of the previous file. If that file is damaged, reads an earlier
// file instead and skips ahead in seq. Returns an error only if the failure may be temporary.
std::string Store::read_predecessor(std::uint32_t number) {
  Database db;
  const std::string path = folder_ + "/" + record_store::segment_name(chain_, number);
  int result = ::access(path.c_str(), F_OK) == 0 ? db.open(path, SQLITE_OPEN_READWRITE) : SQLITE_OK;
  if (db.get() == nullptr) return {};  // the file was removed
  if (result == SQLITE_OK) result = record_store::read_head(db.get(), &head_);
  if (result == SQLITE_OK) {
    remember_rows(db.get());
    ended_before_ = ended_regularly(db.get(), number == 1);
    return {};
  }
  if (is_damage(result)) {
    head_ = {};
    if (number > 1) {
      if (std::string problem = read_predecessor(number - 1); !problem.empty()) return problem;
    }
    ended_before_ = false;
    head_.seq += damage_leap;
    return {};
  }
  path_ = path;
  open_code_ = result;
  no_room_ = false;
  return db.message();
}

void Store::close() {
  tables_.close();
  page_count_ = {};
  if (is_open())
    sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  db_.close();
}

// Opens or creates a file. A new file continues from head_.
std::string Store::open_file(std::uint32_t number, const std::string &previous_file) {
  close();
  number_ = number;
  path_ = folder_ + "/" + record_store::segment_name(chain_, number);
  keep_private(path_);
  const auto failed = [&] { return open_failure(db_.message()); };
  const std::string page_size = "PRAGMA page_size = " + std::to_string(wanted_page_bytes(config_));
  // In mode "full", each commit is synced to disk. The cache is large enough for a batch.
  if (db_.open(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) != SQLITE_OK ||
      db_.run(page_size.c_str()) != SQLITE_OK ||
      db_.run("PRAGMA cache_size = -8192; PRAGMA journal_mode = WAL; "
              "PRAGMA trusted_schema = OFF;") != SQLITE_OK ||
      db_.run(config_.full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL") !=
          SQLITE_OK) {
    return failed();
  }
  if (is_empty(db_.get())) {
    if (std::string problem = make_tables(number, previous_file); !problem.empty()) {
      return open_failure(std::move(problem));
    }
  }
  int schema = 0;
  int result = record_store::read_schema_version(db_.get(), &schema);
  if (result == SQLITE_OK) result = record_store::read_head(db_.get(), &head_);
  if (result != SQLITE_OK) {
    const std::string text = failed();
    open_code_ = result;  // if the first row is missing, SQLite reports no error
    return text;
  }
  if (schema != record_store::schema_version) return leave(schema);
  if (std::string problem = prepare(); !problem.empty()) return open_failure(std::move(problem));
  remember_rows(db_.get());
  unclean_ = !ended_regularly(db_.get(), number_ == 1 || ended_before_);
  return {};
}

// Closes a file with another schema version. Rows written by this version would be hashed
// differently, so they could not be verified in that file.
std::string Store::leave(int schema) {
  remember_rows(db_.get());
  unclean_ = !ended_regularly(db_.get(), number_ == 1 || ended_before_);
  close();
  open_code_ = another_schema;
  no_room_ = false;
  return "uses schema version " + std::to_string(schema) + ", but this program writes version " +
         std::to_string(record_store::schema_version);
}

std::string Store::open_failure(std::string text) {
  open_code_ = sqlite3_extended_errcode(db_.get());
  no_room_ = sqlite3_system_errno(db_.get()) == ENOSPC;
  close();
  return text;
}

bool Store::may_pass() const {
  if (!is_open()) return no_room_ || passes(open_code_);
  return passes(sqlite3_extended_errcode(db_.get()));
}

std::string Store::make_tables(std::uint32_t number, const std::string &previous_file) {
  const std::string head =
      "BEGIN IMMEDIATE; PRAGMA application_id = " + std::to_string(record_store::application_id) +
      "; PRAGMA user_version = " + std::to_string(record_store::schema_version) + ";";
  if (db_.run(head.c_str()) != SQLITE_OK ||
      db_.run(std::string(record_store::schema_sql()).c_str()) != SQLITE_OK) {
    return db_.message();
  }
  Statement segment;
  if (segment.prepare(db_.get(), "INSERT INTO audit_segment VALUES (?,?,?,?,?,?,?)") != SQLITE_OK) {
    return db_.message();
  }
  const std::string now = time_text(bh::unix_ns());
  segment.bind(1, std::int64_t{chain_});
  segment.bind(2, std::int64_t{number});
  segment.bind(3, now);
  segment.bind(4, previous_file);
  segment.bind(5, static_cast<std::int64_t>(head_.seq));
  sqlite3_bind_blob(segment.get(), 6, head_.hash.data(), static_cast<int>(head_.hash.size()),
                    SQLITE_STATIC);
  segment.bind(7, head_.call_id);
  if (segment.step() != SQLITE_DONE) return db_.message();
  segment = {};
  return db_.run("COMMIT") == SQLITE_OK ? "" : db_.message();
}

std::string Store::prepare() {
  if (tables_.prepare(db_.get()) != SQLITE_OK ||
      page_count_.prepare(db_.get(), "PRAGMA page_count") != SQLITE_OK) {
    return db_.message();
  }
  Statement size, checked;
  if (size.prepare(db_.get(), "PRAGMA page_size") == SQLITE_OK && size.step() == SQLITE_ROW) {
    page_bytes_ = static_cast<std::uint64_t>(size.integer(0));
  }
  size = {};
  // Converts the limit to pages, because SQLite limits the WAL in pages.
  const std::string bounds =
      "PRAGMA wal_autocheckpoint = " + std::to_string(log_bytes / page_bytes_) +
      "; PRAGMA journal_size_limit = " + std::to_string(log_bytes);
  if (db_.run(bounds.c_str()) != SQLITE_OK) return db_.message();
  signed_seq_ = 0;
  if (checked.prepare(db_.get(), "SELECT max(seq) FROM audit_checkpoints") == SQLITE_OK &&
      checked.step() == SQLITE_ROW) {
    signed_seq_ = static_cast<std::uint64_t>(checked.integer(0));
  }
  return {};
}

void Store::remember_rows(sqlite3 *db) {
  for (const std::string_view table : numbered_tables) {
    Statement rows;
    if (rows.prepare(db, "SELECT record_number, timestamp FROM " + std::string(table) +
                             " ORDER BY id DESC LIMIT " + std::to_string(remembered_rows)) !=
        SQLITE_OK) {
      continue;  // a file of another schema version may lack the table
    }
    while (rows.step() == SQLITE_ROW) {
      const auto number = static_cast<std::uint64_t>(rows.integer(0));
      last_number_ = std::max(last_number_, number);
      remembered_[number] = rows.text(1);
    }
  }
}

void Store::remember(const std::vector<Row> &rows) {
  for (const Row &row : rows) remembered_[row.number] = time_text(row.start_unix_ns);
  const std::size_t most = remembered_rows * (std::size(numbered_tables) + 1);
  while (remembered_.size() > most) remembered_.erase(remembered_.begin());
}

// Returns true if the last writer of the file shut down cleanly. Returns `without` if the file has
// no mark. This is the case if its writer failed before it had written the first row, and then
// continued in the previous file.
bool Store::ended_regularly(sqlite3 *db, bool without) {
  Statement last;
  if (last.prepare(db,
                   "SELECT kind FROM audit_marks WHERE kind IN ('start', 'end', "
                   "'carried') ORDER BY id DESC LIMIT 1") != SQLITE_OK) {
    return true;
  }
  return last.step() == SQLITE_ROW ? last.text(0) == "end" : without;
}

// ---- rows ------------------------------------------------------------------------------------

bool Store::begin() {
  if (is_damaged() && !leave_damaged().empty()) return false;
  // The file is not open if rotate() could neither create the next file nor reopen the current
  // file.
  if (!is_open() && !open_file(number_, {}).empty()) return false;
  before_ = head_;
  return noted(db_.run("BEGIN IMMEDIATE") == SQLITE_OK) && begin_carried();
}

// If the current file replaced a damaged one, writes the rows with which such a file begins.
bool Store::begin_carried() {
  if (carried_.empty()) return true;
  return mark("carried", carried_) &&
         (identity_.detail.empty() || noted(tables_.put(identity_, &head_)));
}

bool Store::commit() {
  if (!noted(db_.run("COMMIT") == SQLITE_OK)) return false;
  carried_.clear();
  return true;
}

std::string Store::error() const {
  if (is_damaged()) return damage_;
  return is_open() ? db_.message() : "the file is not open";
}

bool Store::noted(bool done) {
  if (!done && is_page_damage(sqlite3_extended_errcode(db_.get()))) damage_ = db_.message();
  return done;
}

// Continues in the next file, after the last committed row. If a later row has been signed, the
// last rows of the damaged file are unreadable, so seq skips ahead. Returns the error. On failure,
// the state does not change, so the function can be called again.
std::string Store::leave_damaged() {
  const auto now = std::chrono::steady_clock::now();
  if (!carried_.empty() && now < leave_not_before_) return damage_;
  const std::string left = path_, name = record_store::segment_name(chain_, number_);
  const Head head = head_;
  const std::uint64_t signed_before = signed_seq_;
  const bool unclean_before = unclean_;
  if (signed_seq_ > head_.seq) head_.seq += damage_leap;
  const Head followed = head_;
  std::string problem = open_file(number_ + 1, name);
  // If the next file already exists, it must be empty or continue from the same head.
  const bool fits = head_.seq == followed.seq && head_.hash == followed.hash;
  if (!problem.empty() || !fits) {
    close();
    // If the file continues from another row, it is left unchanged, and the next call skips it.
    if (problem.empty())
      problem = path_ + " already exists and continues a different row of the chain";
    else
      --number_;
    head_ = head;
    signed_seq_ = signed_before;
    unclean_ = unclean_before;
    return problem;
  }
  log_(BH_LOG_ERROR,
       left + ": " + damage_ + "; the file is left in place, and recording continues in " + path_);
  unclean_ = unclean_before;
  signed_seq_ = std::min(signed_before, head.seq);
  leave_not_before_ = now + std::chrono::milliseconds(leave_again_ms);
  carried_ = "from " + name + ", which is damaged: " + damage_;
  damage_.clear();
  return {};
}

void Store::rollback() {
  if (is_open() && sqlite3_get_autocommit(db_.get()) == 0) db_.run("ROLLBACK");
  head_ = before_;
}

bool Store::put(const Row &row, bool *known) {
  *known = is_remembered(row);
  if (*known) return true;
  if (row.kind == BH_RECORD_IDENTITY) identity_ = row;
  return noted(tables_.put(row, &head_));
}

bool Store::is_remembered(const Row &row) const {
  // Record numbers usually increase, so this test suffices for nearly all rows.
  if (remembered_.empty() || row.number > remembered_.rbegin()->first) return false;
  const auto at = remembered_.find(row.number);
  return at != remembered_.end() && at->second == time_text(row.start_unix_ns);
}

bool Store::mark(std::string_view kind, std::string_view detail) {
  return noted(tables_.mark(kind, detail, &head_));
}

// ---- checkpoints, files ----------------------------------------------------------------------

bool Store::checkpoint(const Sign &sign) {
  if (!is_open()) return false;
  if (unsigned_rows() == 0) return true;
  // Signed rows must survive a power failure. The SQLite checkpoint syncs the rows that it copies
  // to the database file. Other rows stay in the WAL if readers or another checkpoint prevent
  // copying, so the WAL is also synced.
  sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (!flush_log(db_.get())) return false;
  bh_signature made{};
  made.size = sizeof made;
  const std::string statement = record_store::checkpoint_statement(chain_, head_);
  if (!sign(statement, &made)) return false;
  Statement insert;
  if (insert.prepare(db_.get(),
                     "INSERT INTO audit_checkpoints (timestamp, seq, head, statement, instance, "
                     "signed_at, public_key, signature) VALUES (?,?,?,?,?,?,?,?)") != SQLITE_OK) {
    return noted(false);
  }
  const std::string now = time_text(bh::unix_ns());
  const auto blob = [&](int at, const void *data, std::size_t n) {
    sqlite3_bind_blob(insert.get(), at, data, static_cast<int>(n), SQLITE_STATIC);
  };
  insert.bind(1, now);
  insert.bind(2, static_cast<std::int64_t>(head_.seq));
  blob(3, head_.hash.data(), head_.hash.size());
  insert.bind(4, statement);
  insert.bind(5, instance_);
  insert.bind(6, static_cast<std::int64_t>(made.unix_s));
  blob(7, made.public_key, sizeof made.public_key);
  blob(8, made.signature, sizeof made.signature);
  if (insert.step() != SQLITE_DONE) return noted(false);
  signed_seq_ = head_.seq;
  return true;
}

bool Store::is_full() {
  if (!is_open()) return false;
  page_count_.reset();
  const bool known = page_count_.step() == SQLITE_ROW;
  const auto pages = static_cast<std::uint64_t>(known ? page_count_.integer(0) : 0);
  page_count_.reset();
  return pages * page_bytes_ >= config_.segment_bytes;
}

std::string Store::rotate() {
  const std::string previous = record_store::segment_name(chain_, number_);
  const std::uint64_t signed_before = signed_seq_;
  const bool unclean_before = unclean_;
  std::string problem = open_file(number_ + 1, previous);
  if (!problem.empty()) {
    // Reopens the full file and continues recording in it.
    const std::string again = open_file(number_ - 1, {});
    return again.empty() ? problem : again;
  }
  unclean_ = unclean_before;
  signed_seq_ = signed_before;
  if (!identity_.detail.empty()) static_cast<void>(tables_.put(identity_, &head_));
  return {};
}

void Store::drop_old() {
  std::vector<SegmentFile> own;
  std::uint64_t bytes = 0;
  for (SegmentFile &file : record_store::segment_files(folder_)) {
    if (file.chain != chain_) continue;
    bytes += file.bytes;
    if (file.number != number_) own.push_back(std::move(file));
  }
  const std::uint64_t days_ns = config_.retention_days * 86'400'000'000'000ull;
  const std::uint64_t now = bh::unix_ns();
  for (const SegmentFile &file : own) {
    const bool large = bytes > config_.max_bytes;
    const bool old = days_ns != 0 && static_cast<std::uint64_t>(file.changed_ns) + days_ns < now;
    if (!large && !old) return;  // the remaining files are newer
    if (!drop(file, large ? "max_bytes" : "retention_days")) return;
    bytes -= std::min(bytes, file.bytes);
  }
}

// Returns the last row of a file. If the file is damaged, returns the row from which the next file
// continues.
Head Store::last_of(const SegmentFile &file) const {
  Head last;
  Database db, next;
  Statement start;
  const std::string behind = folder_ + "/" + record_store::segment_name(chain_, file.number + 1);
  if (db.open(file.path, SQLITE_OPEN_READONLY) == SQLITE_OK &&
      record_store::read_head(db.get(), &last) == SQLITE_OK) {
    return last;
  }
  last = {};
  if (next.open(behind, SQLITE_OPEN_READONLY) == SQLITE_OK &&
      start.prepare(next.get(), "SELECT previous_seq, previous_hash FROM audit_segment") ==
          SQLITE_OK &&
      start.step() == SQLITE_ROW) {
    last.seq = static_cast<std::uint64_t>(start.integer(0));
    start.blob(1).copy(reinterpret_cast<char *>(last.hash.data()), last.hash.size());
  }
  return last;
}

bool Store::drop(const SegmentFile &file, std::string_view why) {
  const std::string detail = record_store::segment_name(file.chain, file.number) + " by " +
                             std::string(why) + record_store::dropped_text(last_of(file));
  if (!begin() || !mark("dropped", detail) || !commit()) {
    rollback();
    return false;
  }
  // Makes the mark durable before the file is removed.
  if (!flush_log(db_.get())) return false;
  if (::unlink(file.path.c_str()) != 0) return false;
  for (const char *end : {"-wal", "-shm"}) ::unlink((file.path + end).c_str());
  return true;
}

}  // namespace telemetry_sqlite
