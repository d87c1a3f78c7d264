#include "telemetry-sqlite/store.hpp"

#include <bulkhead/abi/ext/policy.h>
#include <bulkhead/abi/ext/telemetry.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "record-store/schema.hpp"
#include "telemetry-sqlite/time_text.hpp"

namespace telemetry_sqlite {
namespace {

using record_store::Database;
using record_store::Head;
using record_store::SegmentFile;
using record_store::Statement;

constexpr std::string_view call_columns =
    "id, timestamp, server_name, method, tool_name, request_id, request_preview, "
    "response_preview, decision, duration_ms, error_message, process_name, bytes_sent, "
    "bytes_received, policy_mode, policy_action, policy_rule, policy_reason, trace_id, target, "
    "outcome, transport, peer, principal, session, duration_us, flags, record_number";
constexpr std::string_view mark_columns = "id, timestamp, kind, detail";

std::string_view outcome_text(std::uint32_t outcome) {
  switch (outcome) {
    case BH_OUTCOME_OK:
      return "ok";
    case BH_OUTCOME_REFUSED:
      return "refused";
    case BH_OUTCOME_TIMEOUT:
      return "timeout";
    case BH_OUTCOME_CANCELLED:
      return "cancelled";
    default:
      return "error";
  }
}

std::string_view action_text(std::uint32_t action) {
  switch (action) {
    case BH_VERDICT_ALLOW:
      return "allow";
    case BH_VERDICT_ASK:
      return "ask";
    case BH_VERDICT_BLOCK:
      return "block";
    case BH_VERDICT_REWRITE:
      return "rewrite";
    default:
      return {};
  }
}

std::string_view decision_text(const Row &row) {
  if (row.outcome == BH_OUTCOME_REFUSED) return "denied";
  return row.outcome == BH_OUTCOME_OK ? "allowed" : "error";
}

// Whose the answer was: lists are everybody's, the rest is the gateway's own.
std::string_view server_text(const Row &row) {
  if (!row.server.empty()) return row.server;
  return row.method.ends_with("/list") ? "*" : "gateway";
}

bool is_empty(sqlite3 *db) {
  Statement tables;
  return tables.prepare(db, "SELECT 1 FROM sqlite_schema LIMIT 1") == SQLITE_OK &&
         tables.step() == SQLITE_DONE;
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
  // A process that was killed while it began a file has left it empty: it goes on from the one
  // before.
  const bool follows = last > 1;
  if (follows) look_back(last - 1);
  std::string problem = open_file(
      std::max(last, 1u), follows ? record_store::segment_name(chain_, last - 1) : std::string());
  if (problem.empty() || last == 0) return problem;
  // What cannot be read any more is left for a person to look at.
  log_(BH_LOG_ERROR, path_ + ": " + problem + "; going on in a new file");
  const std::string damaged = path_;
  head_ = {};
  problem = open_file(last + 1, damaged);
  if (!problem.empty()) return problem;
  unclean_ = true;
  return {};
}

// The head and the last rows of a file that others follow.
void Store::look_back(std::uint32_t number) {
  Database db;
  const std::string path = folder_ + "/" + record_store::segment_name(chain_, number);
  if (db.open(path, SQLITE_OPEN_READWRITE) != SQLITE_OK) return;
  if (record_store::read_head(db.get(), &head_) == SQLITE_OK) remember_rows(db.get());
}

void Store::close() {
  insert_call_ = {};
  insert_mark_ = {};
  page_count_ = {};
  if (is_open())
    sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  db_.close();
}

// Opens or makes the file of this number; a new one follows head_.
std::string Store::open_file(std::uint32_t number, const std::string &previous_file) {
  close();
  number_ = number;
  path_ = folder_ + "/" + record_store::segment_name(chain_, number);
  const auto failed = [&] {
    std::string text = db_.message();
    close();
    return text;
  };
  if (db_.open(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) != SQLITE_OK ||
      db_.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
              "PRAGMA journal_size_limit = 16777216; PRAGMA trusted_schema = OFF;") != SQLITE_OK) {
    return failed();
  }
  if (is_empty(db_.get())) {
    if (std::string problem = make_tables(number, previous_file); !problem.empty()) {
      close();
      return problem;
    }
  }
  if (record_store::read_head(db_.get(), &head_) != SQLITE_OK) return failed();
  if (std::string problem = prepare(); !problem.empty()) {
    close();
    return problem;
  }
  remember_rows(db_.get());
  unclean_ = !look_for_end();
  return {};
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
  const std::string now = time_text(unix_ns_now());
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
  if (insert_call_.prepare(db_.get(), "mcp_calls", call_columns) != SQLITE_OK ||
      insert_mark_.prepare(db_.get(), "audit_marks", mark_columns) != SQLITE_OK ||
      page_count_.prepare(db_.get(), "PRAGMA page_count") != SQLITE_OK) {
    return db_.message();
  }
  Statement size, checked;
  if (size.prepare(db_.get(), "PRAGMA page_size") == SQLITE_OK && size.step() == SQLITE_ROW) {
    page_bytes_ = static_cast<std::uint64_t>(size.integer(0));
  }
  signed_seq_ = 0;
  if (checked.prepare(db_.get(), "SELECT max(seq) FROM audit_checkpoints") == SQLITE_OK &&
      checked.step() == SQLITE_ROW) {
    signed_seq_ = static_cast<std::uint64_t>(checked.integer(0));
  }
  return {};
}

void Store::remember_rows(sqlite3 *db) {
  Statement rows;
  if (rows.prepare(db,
                   "SELECT record_number, timestamp FROM mcp_calls ORDER BY id DESC "
                   "LIMIT " +
                       std::to_string(remembered_rows)) != SQLITE_OK) {
    return;
  }
  while (rows.step() == SQLITE_ROW) {
    last_number_ = std::max(last_number_, static_cast<std::uint64_t>(rows.integer(0)));
    remembered_[static_cast<std::uint64_t>(rows.integer(0))] = rows.text(1);
  }
}

// Has whoever wrote here before said that it is done?
bool Store::look_for_end() {
  Statement last;
  if (last.prepare(db_.get(),
                   "SELECT kind FROM audit_marks WHERE kind IN ('start', 'end', "
                   "'carried') ORDER BY id DESC LIMIT 1") != SQLITE_OK) {
    return true;
  }
  // The first row of a file is such a mark, unless its writer has not come to that.
  return last.step() == SQLITE_ROW ? last.text(0) == "end" : number_ == 1;
}

// ---- rows ------------------------------------------------------------------------------------

bool Store::begin() {
  // It could not be opened again after the next one could not be made.
  if (!is_open() && !open_file(number_, {}).empty()) return false;
  before_ = head_;
  return db_.run("BEGIN IMMEDIATE") == SQLITE_OK;
}

bool Store::commit() {
  return db_.run("COMMIT") == SQLITE_OK;
}

void Store::rollback() {
  if (is_open() && sqlite3_get_autocommit(db_.get()) == 0) db_.run("ROLLBACK");
  head_ = before_;
}

bool Store::put(const Row &row, bool *known) {
  const std::string timestamp = time_text(row.start_unix_ns);
  const auto at = remembered_.find(row.number);
  *known = at != remembered_.end() && at->second == timestamp;
  if (*known) return true;
  const std::string session = row.session == 0 ? "" : std::to_string(row.session);
  const bool asked = row.action != 0;
  auto &i = insert_call_;
  i.begin();
  i.integer(head_.call_id + 1);
  i.text(timestamp);
  i.text(server_text(row));
  i.text(row.method);
  i.text_or_null(row.method == "tools/call" ? std::string_view(row.name) : std::string_view());
  i.text_or_null(row.request_id);
  i.text_or_null(row.request);
  i.text_or_null(row.response);
  i.text(decision_text(row));
  i.integer(static_cast<std::int64_t>((row.duration_ns + 999'999) / 1'000'000));
  i.text_or_null(row.error);
  i.text_or_null(row.process_name);
  i.integer(static_cast<std::int64_t>(row.params_bytes));
  i.integer(static_cast<std::int64_t>(row.result_bytes));
  i.text(asked ? "enforce" : "audit_only");
  i.text_or_null(action_text(row.action));
  i.text_or_null(row.rule);
  i.text_or_null(row.reason);
  i.text_or_null(row.trace_id);
  i.text_or_null(row.name);
  i.text(outcome_text(row.outcome));
  i.text_or_null(row.transport);
  i.text_or_null(row.peer);
  i.text_or_null(row.principal);
  i.text_or_null(session);
  i.integer(static_cast<std::int64_t>(row.duration_ns / 1'000));
  i.integer(row.flags);
  i.integer(static_cast<std::int64_t>(row.number));
  if (i.finish(&head_) != SQLITE_DONE) return false;
  ++head_.call_id;
  return true;
}

bool Store::mark(std::string_view kind, std::string_view detail) {
  const std::string now = time_text(unix_ns_now());
  insert_mark_.begin();
  insert_mark_.integer(static_cast<std::int64_t>(head_.seq + 1));
  insert_mark_.text(now);
  insert_mark_.text(kind);
  insert_mark_.text_or_null(detail);
  return insert_mark_.finish(&head_) == SQLITE_DONE;
}

// ---- checkpoints, files ----------------------------------------------------------------------

bool Store::checkpoint(const Sign &sign) {
  if (!is_open() || unsigned_rows() == 0) return true;
  // A power cut must not take what was signed.
  sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  bh_signature made{};
  made.size = sizeof made;
  const std::string statement = record_store::checkpoint_statement(chain_, head_);
  if (!sign(statement, &made)) return false;
  Statement insert;
  if (insert.prepare(db_.get(),
                     "INSERT INTO audit_checkpoints (timestamp, seq, head, statement, instance, "
                     "signed_at, public_key, signature) VALUES (?,?,?,?,?,?,?,?)") != SQLITE_OK) {
    return false;
  }
  const std::string now = time_text(unix_ns_now());
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
  if (insert.step() != SQLITE_DONE) return false;
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
    // The one before it goes on.
    const std::string again = open_file(number_ - 1, {});
    return again.empty() ? problem : again;
  }
  unclean_ = unclean_before;
  signed_seq_ = signed_before;
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
  const std::uint64_t now = unix_ns_now();
  for (const SegmentFile &file : own) {
    const bool large = bytes > config_.max_bytes;
    const bool old = days_ns != 0 && static_cast<std::uint64_t>(file.changed_ns) + days_ns < now;
    if (!large && !old) return;  // the oldest come first
    if (!drop(file, large ? "max_bytes" : "retention_days")) return;
    bytes -= std::min(bytes, file.bytes);
  }
}

bool Store::drop(const SegmentFile &file, std::string_view why) {
  Head last;
  {
    Database db;
    if (db.open(file.path, SQLITE_OPEN_READONLY) == SQLITE_OK) {
      record_store::read_head(db.get(), &last);
    }
  }
  const std::string detail = record_store::segment_name(file.chain, file.number) + " by " +
                             std::string(why) + ": its last row was seq " +
                             std::to_string(last.seq) + " with hash " +
                             record_store::hex_of(record_store::bytes_of(last.hash));
  if (!begin() || !mark("dropped", detail) || !commit()) {
    rollback();
    return false;
  }
  if (::unlink(file.path.c_str()) != 0) return false;
  for (const char *end : {"-wal", "-shm"}) ::unlink((file.path + end).c_str());
  return true;
}

}  // namespace telemetry_sqlite
