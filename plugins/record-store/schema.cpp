#include "record-store/schema.hpp"

namespace record_store {
namespace {

// Creates a chained table with the given columns, the chain columns, and triggers that reject
// changes. This SQL must not be edited, because each file's schema is compared with it during
// verification.
#define BH_CHAINED(name, columns)                                                 \
  "CREATE TABLE " name " (\n" columns                                             \
  ",\n  seq INTEGER NOT NULL,\n  prev BLOB NOT NULL,\n  hash BLOB NOT NULL\n);\n" \
  "CREATE TRIGGER " name "_no_update BEFORE UPDATE ON " name                      \
  " BEGIN SELECT RAISE(ABORT, 'rows on record are not changed'); END;\n"          \
  "CREATE TRIGGER " name "_no_delete BEFORE DELETE ON " name                      \
  " BEGIN SELECT RAISE(ABORT, 'rows on record are not deleted'); END;\n"

// The name that the client claims to have. It is not verified. Added in schema 3.
#define BH_CLAIMED_NAME ",\n  claimed_name TEXT"
// The MCP revisions of both sides. Added in schema 4.
#define BH_REVISIONS ",\n  client_revision TEXT,\n  server_revision TEXT"

constexpr std::string_view all_statements =
    "-- One row for each completed request and notification of a client.\n"
    "-- decision: allowed, denied, error. policy_mode: enforce if a policy decided, else\n"
    "-- audit_only. outcome: ok, error, refused, timeout, cancelled. flags: 1 warned,\n"
    "-- 2 notification, 4 request_preview is incomplete, 8 response_preview is incomplete,\n"
    "-- 16 rejected before it was sent, 65536 the result has isError (within the recorded part).\n"
    "-- intent: record_number of the call's row in call_intents.\n"
    "-- claimed_name: clientInfo.name of the client's initialize, not verified.\n"
    "-- client_revision, server_revision: MCP revision that the client and the server use.\n"
    "-- seq, prev, hash: the chain; see docs/telemetry.md.\n" BH_CHAINED(
        "mcp_calls",
        "  id INTEGER PRIMARY KEY,\n"
        "  timestamp TEXT NOT NULL,\n"
        "  server_name TEXT NOT NULL,\n"
        "  method TEXT NOT NULL,\n"
        "  tool_name TEXT,\n"
        "  request_id TEXT,\n"
        "  request_preview TEXT,\n"
        "  response_preview TEXT,\n"
        "  decision TEXT NOT NULL,\n"
        "  duration_ms INTEGER DEFAULT 0,\n"
        "  error_message TEXT,\n"
        "  process_name TEXT,\n"
        "  bytes_sent INTEGER DEFAULT 0,\n"
        "  bytes_received INTEGER DEFAULT 0,\n"
        "  policy_mode TEXT,\n"
        "  policy_action TEXT,\n"
        "  policy_rule TEXT,\n"
        "  policy_reason TEXT,\n"
        "  trace_id TEXT,\n"
        "  target TEXT,\n"
        "  outcome TEXT NOT NULL,\n"
        "  transport TEXT,\n"
        "  peer TEXT,\n"
        "  principal TEXT,\n"
        "  session TEXT,\n"
        "  duration_us INTEGER,\n"
        "  flags INTEGER,\n"
        "  record_number INTEGER,\n"
        "  intent INTEGER" BH_CLAIMED_NAME BH_REVISIONS)
    "CREATE INDEX mcp_calls_server_name ON mcp_calls(server_name);\n"
    "CREATE INDEX mcp_calls_timestamp ON mcp_calls(timestamp);\n"
    "-- Calls recorded before they are sent to a server; mode full only. If the record_number is in\n"
    "-- no mcp_calls.intent, the call may have run.\n" BH_CHAINED(
        "call_intents",
        "  id INTEGER PRIMARY KEY,\n"
        "  timestamp TEXT NOT NULL,\n"
        "  server_name TEXT NOT NULL,\n"
        "  method TEXT NOT NULL,\n"
        "  tool_name TEXT,\n"
        "  request_id TEXT,\n"
        "  request_preview TEXT,\n"
        "  process_name TEXT,\n"
        "  policy_action TEXT,\n"
        "  policy_rule TEXT,\n"
        "  trace_id TEXT,\n"
        "  target TEXT,\n"
        "  transport TEXT,\n"
        "  principal TEXT,\n"
        "  session TEXT,\n"
        "  flags INTEGER,\n"
        "  record_number INTEGER" BH_CLAIMED_NAME)
    "-- HTTP requests of builtin tools, and rejected ones.\n" BH_CHAINED(
        "net_events",
        "  id INTEGER PRIMARY KEY,\n"
        "  timestamp TEXT NOT NULL,\n"
        "  domain TEXT NOT NULL,\n"
        "  port INTEGER,\n"
        "  decision TEXT NOT NULL,\n"
        "  process_name TEXT,\n"
        "  method TEXT,\n"
        "  path TEXT,\n"
        "  status_code INTEGER,\n"
        "  bytes_sent INTEGER DEFAULT 0,\n"
        "  bytes_received INTEGER DEFAULT 0,\n"
        "  duration_ms INTEGER DEFAULT 0,\n"
        "  policy_mode TEXT,\n"
        "  policy_action TEXT,\n"
        "  policy_rule TEXT,\n"
        "  policy_reason TEXT,\n"
        "  trace_id TEXT,\n"
        "  server_name TEXT,\n"
        "  record_number INTEGER")
    "-- Changes of files by builtin tools.\n" BH_CHAINED(
        "fs_events",
        "  id INTEGER PRIMARY KEY,\n"
        "  timestamp TEXT NOT NULL,\n"
        "  action TEXT NOT NULL CHECK (action IN ('created', 'modified', 'deleted', 'restored')),\n"
        "  path TEXT NOT NULL,\n"
        "  size INTEGER,\n"
        "  trace_id TEXT,\n"
        "  server_name TEXT,\n"
        "  record_number INTEGER")
    "-- Snapshots of the workspace by builtin tools.\n" BH_CHAINED(
        "snapshot_events",
        "  id INTEGER PRIMARY KEY,\n"
        "  timestamp TEXT NOT NULL,\n"
        "  slot INTEGER NOT NULL,\n"
        "  origin TEXT NOT NULL,\n"
        "  name TEXT,\n"
        "  files_count INTEGER,\n"
        "  start_fs_event_id INTEGER,\n"
        "  stop_fs_event_id INTEGER,\n"
        "  trace_id TEXT,\n"
        "  server_name TEXT,\n"
        "  record_number INTEGER")
    "-- Decisions of policy rules, and all rejections.\n" BH_CHAINED(
        "security_events",
        "  id INTEGER PRIMARY KEY,\n"
        "  event_id TEXT NOT NULL UNIQUE,\n"
        "  timestamp TEXT NOT NULL,\n"
        "  event_family TEXT NOT NULL,\n"
        "  source_engine TEXT NOT NULL,\n"
        "  final_action TEXT NOT NULL,\n"
        "  enforceability TEXT NOT NULL CHECK (enforceability IN ('inline_blockable',"
        " 'observe_only', 'remediation_only')),\n"
        "  rule_id TEXT,\n"
        "  reason TEXT,\n"
        "  redaction_state TEXT NOT NULL CHECK (redaction_state IN ('raw', 'redacted',"
        " 'summary-only')),\n"
        "  trace_id TEXT,\n"
        "  server_name TEXT,\n"
        "  target TEXT,\n"
        "  record_number INTEGER")
    "-- Approvals: one row for the request, one for the outcome, one if a grant ends early.\n" BH_CHAINED(
        "approvals",
        "  id INTEGER PRIMARY KEY,\n"
        "  timestamp TEXT NOT NULL,\n"
        "  approval_id TEXT NOT NULL,\n"
        "  status TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'denied', 'expired',"
        " 'withdrawn')),\n"
        "  server_name TEXT NOT NULL,\n"
        "  tool_name TEXT,\n"
        "  arguments_digest TEXT,\n"
        "  rule_id TEXT,\n"
        "  reason TEXT,\n"
        "  surface TEXT,\n"
        "  principal TEXT,\n"
        "  trace_id TEXT,\n"
        "  scope TEXT,\n"
        "  record_number INTEGER" BH_CLAIMED_NAME)
    "-- Events of the recording itself: start, end, unclean, gap, lost, carried, dropped,\n"
    "-- unreadable, policy.\n"
    BH_CHAINED(
        "audit_marks",
        "  id INTEGER PRIMARY KEY,\n"
        "  timestamp TEXT NOT NULL,\n"
        "  kind TEXT NOT NULL,\n"
        "  detail TEXT")
    "-- Identity of the session; at most one row.\n"
    "CREATE TABLE session_identity (\n"
    "  updated_at TEXT NOT NULL,\n"
    "  vm_id TEXT,\n"
    "  profile_id TEXT,\n"
    "  user_id TEXT\n"
    ");\n"
    "-- Signatures of the supervisor for the chain up to the row seq.\n"
    "CREATE TABLE audit_checkpoints (\n"
    "  id INTEGER PRIMARY KEY,\n"
    "  timestamp TEXT NOT NULL,\n"
    "  seq INTEGER NOT NULL,\n"
    "  head BLOB NOT NULL,\n"
    "  statement TEXT NOT NULL,\n"
    "  instance TEXT NOT NULL,\n"
    "  signed_at INTEGER NOT NULL,\n"
    "  public_key BLOB NOT NULL,\n"
    "  signature BLOB NOT NULL\n"
    ");\n"
    "-- Position of this file in its chain; one row.\n"
    "CREATE TABLE audit_segment (\n"
    "  chain INTEGER NOT NULL,\n"
    "  number INTEGER NOT NULL,\n"
    "  created TEXT NOT NULL,\n"
    "  previous_file TEXT,\n"
    "  previous_seq INTEGER NOT NULL,\n"
    "  previous_hash BLOB NOT NULL,\n"
    "  previous_id INTEGER NOT NULL\n"
    ");\n";

constexpr std::string_view claimed_name = BH_CLAIMED_NAME, both_revisions = BH_REVISIONS;

#undef BH_REVISIONS
#undef BH_CLAIMED_NAME
#undef BH_CHAINED

}  // namespace

std::string_view schema_sql() noexcept {
  return all_statements;
}

std::string schema_sql(int version) {
  std::string out;
  if (version < oldest_schema_version || version > schema_version) return out;
  out = all_statements;
  const auto remove = [&out](std::string_view columns) {
    for (std::size_t at; (at = out.find(columns)) != out.npos;) out.erase(at, columns.size());
  };
  if (version < 4) remove(both_revisions);
  if (version < 3) remove(claimed_name);
  return out;
}

}  // namespace record_store
