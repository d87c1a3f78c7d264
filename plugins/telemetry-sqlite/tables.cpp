#include "telemetry-sqlite/tables.hpp"

#include <bulkhead/abi/ext/policy.h>
#include <bulkhead/abi/ext/telemetry.h>
#include <rapidjson/document.h>
#include <bulkhead/cpp/clock.hpp>
#include <bulkhead/cpp/json_reader.hpp>
#include <bulkhead/cpp/record_names.hpp>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

#include "record-store/schema.hpp"
#include "telemetry-sqlite/time_text.hpp"

namespace telemetry_sqlite {
namespace {

using record_store::ChainedInsert;
using record_store::Head;

std::string_view decision_text(const Row &row) {
  if (row.outcome == BH_OUTCOME_REFUSED) return "denied";
  return row.outcome == BH_OUTCOME_OK ? "allowed" : "error";
}

// Returns the server that responded, "*" for lists, or "gateway" if the gateway itself responded.
std::string_view server_text(const Row &row) {
  if (!row.server.empty()) return row.server;
  return row.method.ends_with("/list") ? "*" : "gateway";
}

std::string_view tool_text(const Row &row) {
  return row.method == "tools/call" ? std::string_view(row.name) : std::string_view();
}

std::string session_text(const Row &row) {
  return row.session == 0 ? "" : std::to_string(row.session);
}

// Returns true if a tool result contains "isError": true at the top level.
bool says_error(std::string_view result) {
  return result.find("\"isError\"") != result.npos &&  // quickly excludes nearly all results
         bh::json::member(result, "isError") == "true";
}

std::uint32_t flags_of(const Row &row) {
  const bool error = row.method == "tools/call" && says_error(row.response);
  return row.flags | (error ? record_store::flag_tool_error : 0);
}

// Returns true if `rule` indicates that a policy failed to decide.
bool is_failure(std::string_view rule) {
  return rule == "policy-failed" || rule == "policy-timeout";
}

bool is_one_of(std::string_view value, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Parses the JSON detail of a record.
class Detail {
 public:
  explicit Detail(const std::string &json) {
    root_.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  }
  bool readable() const { return !root_.HasParseError() && root_.IsObject(); }
  std::string_view text(const char *name) const {
    const auto *value = find(name);
    return value != nullptr && value->IsString()
               ? std::string_view(value->GetString(), value->GetStringLength())
               : std::string_view();
  }
  bool has_number(const char *name) const {
    const auto *value = find(name);
    return value != nullptr && value->IsInt64();
  }
  std::int64_t number(const char *name) const {
    return has_number(name) ? find(name)->GetInt64() : 0;
  }
  void add_number(const char *name, ChainedInsert *to) const {
    has_number(name) ? to->integer(number(name)) : to->null();
  }

 private:
  const rapidjson::Value *find(const char *name) const {
    const auto it = root_.FindMember(name);
    return it == root_.MemberEnd() ? nullptr : &it->value;
  }
  rapidjson::Document root_;
};

void begin(ChainedInsert *insert, const Head &head, std::string_view timestamp) {
  insert->begin();
  insert->integer(static_cast<std::int64_t>(head.seq + 1));
  insert->text(timestamp);
}

}  // namespace

int Tables::prepare(sqlite3 *db) {
  struct Wanted {
    ChainedInsert *insert;
    std::string_view table, columns;
  };
  const Wanted all[] = {
      {&calls_, "mcp_calls",
       "id, timestamp, server_name, method, tool_name, request_id, request_preview, "
       "response_preview, decision, duration_ms, error_message, process_name, bytes_sent, "
       "bytes_received, policy_mode, policy_action, policy_rule, policy_reason, trace_id, target, "
       "outcome, transport, peer, principal, session, duration_us, flags, record_number, intent, "
       "claimed_name, client_revision, server_revision"},
      {&intents_, "call_intents",
       "id, timestamp, server_name, method, tool_name, request_id, request_preview, process_name, "
       "policy_action, policy_rule, trace_id, target, transport, principal, session, flags, "
       "record_number, claimed_name"},
      {&net_, "net_events",
       "id, timestamp, domain, port, decision, process_name, method, path, status_code, "
       "bytes_sent, bytes_received, duration_ms, policy_mode, policy_action, policy_rule, "
       "policy_reason, trace_id, server_name, record_number"},
      {&fs_, "fs_events",
       "id, timestamp, action, path, size, trace_id, server_name, record_number"},
      {&snapshots_, "snapshot_events",
       "id, timestamp, slot, origin, name, files_count, start_fs_event_id, stop_fs_event_id, "
       "trace_id, server_name, record_number"},
      {&decisions_, "security_events",
       "id, event_id, timestamp, event_family, source_engine, final_action, enforceability, "
       "rule_id, reason, redaction_state, trace_id, server_name, target, record_number"},
      {&approvals_, "approvals",
       "id, timestamp, approval_id, status, server_name, tool_name, arguments_digest, rule_id, "
       "reason, surface, principal, trace_id, scope, record_number, claimed_name"},
      {&marks_, "audit_marks", "id, timestamp, kind, detail"}};
  for (const Wanted &one : all) {
    if (const int result = one.insert->prepare(db, one.table, one.columns); result != SQLITE_OK) {
      return result;
    }
  }
  if (const int result = forget_identity_.prepare(db, "DELETE FROM session_identity");
      result != SQLITE_OK) {
    return result;
  }
  return insert_identity_.prepare(
      db, "INSERT INTO session_identity (updated_at, profile_id, user_id) VALUES (?,?,?)");
}

bool Tables::put(const Row &row, Head *head) {
  switch (row.kind) {
    case BH_RECORD_CALL:
      return call(row, head) && decision(row, head);
    case BH_RECORD_INTENT:
      return intent(row, head);
    case BH_RECORD_APPROVAL:
      return approval(row, head);
    case BH_RECORD_NET:
      return net(row, head);
    case BH_RECORD_FS:
      return fs(row, head);
    case BH_RECORD_SNAPSHOT:
      return snapshot(row, head);
    case BH_RECORD_IDENTITY:
      return identity(row, head);
    case BH_RECORD_POLICY:
      return policy(row, head);
    case BH_RECORD_PLUGIN:
      return plugin(row, head);
    default:
      return true;
  }
}

bool Tables::call(const Row &row, Head *head) {
  const std::string timestamp = time_text(row.start_unix_ns), session = session_text(row),
                    client_revision = bh::revision_text(row.client_revision),
                    server_revision = bh::revision_text(row.server_revision);
  auto &i = calls_;
  i.begin();
  i.integer(head->call_id + 1);
  i.text(timestamp);
  i.text(server_text(row));
  i.text(row.method);
  i.text_or_null(tool_text(row));
  i.text_or_null(row.request_id);
  i.text_or_null(row.request);
  i.text_or_null(row.response);
  i.text(decision_text(row));
  i.integer(static_cast<std::int64_t>((row.duration_ns + 999'999) / 1'000'000));
  i.text_or_null(row.error);
  i.text_or_null(row.process_name);
  i.integer(static_cast<std::int64_t>(row.params_bytes));
  i.integer(static_cast<std::int64_t>(row.result_bytes));
  i.text(row.action != 0 ? "enforce" : "audit_only");
  i.text_or_null(bh::action_name(row.action));
  i.text_or_null(row.rule);
  i.text_or_null(row.reason);
  i.text_or_null(row.trace_id);
  i.text_or_null(row.name);
  i.text(bh::outcome_name(row.outcome));
  i.text_or_null(row.transport);
  i.text_or_null(row.peer);
  i.text_or_null(row.principal);
  i.text_or_null(session);
  i.integer(static_cast<std::int64_t>(row.duration_ns / 1'000));
  i.integer(flags_of(row));
  i.integer(static_cast<std::int64_t>(row.number));
  row.intent == 0 ? i.null() : i.integer(static_cast<std::int64_t>(row.intent));
  i.text_or_null(row.claimed_name);
  i.text_or_null(client_revision);
  i.text_or_null(server_revision);
  if (i.finish(head) != SQLITE_DONE) return false;
  ++head->call_id;
  return true;
}

// Records rejections and decisions made by rules. A call that is allowed by default is not
// recorded; for such a call, policy-rules reports the rule "security.rules.mcp.default".
bool Tables::decision(const Row &row, Head *head) {
  const bool by_rule = !row.rule.empty() && !row.rule.ends_with(".default");
  if (row.action == 0 || (row.action == BH_VERDICT_ALLOW && !by_rule)) return true;
  const std::string timestamp = time_text(row.start_unix_ns);
  char event_id[17];
  std::snprintf(event_id, sizeof event_id, "%012" PRIx64, head->seq + 1);
  auto &i = decisions_;
  i.begin();
  i.integer(static_cast<std::int64_t>(head->seq + 1));
  i.text(event_id);
  i.text(timestamp);
  i.text("mcp");
  i.text("policy");
  i.text(is_failure(row.rule) ? "error" : bh::action_name(row.action));
  i.text("inline_blockable");
  i.text_or_null(row.rule);
  i.text_or_null(row.reason.empty() && row.outcome == BH_OUTCOME_REFUSED ? row.error : row.reason);
  i.text("summary-only");
  i.text_or_null(row.trace_id);
  i.text(server_text(row));
  i.text_or_null(row.name);
  i.integer(static_cast<std::int64_t>(row.number));
  return i.finish(head) == SQLITE_DONE;
}

bool Tables::intent(const Row &row, Head *head) {
  const std::string timestamp = time_text(row.start_unix_ns), session = session_text(row);
  auto &i = intents_;
  begin(&i, *head, timestamp);
  i.text(server_text(row));
  i.text(row.method);
  i.text_or_null(tool_text(row));
  i.text_or_null(row.request_id);
  i.text_or_null(row.request);
  i.text_or_null(row.process_name);
  i.text_or_null(bh::action_name(row.action));
  i.text_or_null(row.rule);
  i.text_or_null(row.trace_id);
  i.text_or_null(row.name);
  i.text_or_null(row.transport);
  i.text_or_null(row.principal);
  i.text_or_null(session);
  i.integer(row.flags);
  i.integer(static_cast<std::int64_t>(row.number));
  i.text_or_null(row.claimed_name);
  return i.finish(head) == SQLITE_DONE;
}

bool Tables::approval(const Row &row, Head *head) {
  const Detail detail(row.detail);
  if (!detail.readable() || !is_one_of(detail.text("status"),
                                       {"pending", "approved", "denied", "expired", "withdrawn"})) {
    return unreadable(row, head);
  }
  const std::string timestamp = time_text(row.start_unix_ns);
  auto &i = approvals_;
  begin(&i, *head, timestamp);
  i.text(detail.text("id"));
  i.text(detail.text("status"));
  i.text(server_text(row));
  i.text_or_null(row.name);
  i.text_or_null(detail.text("digest"));
  i.text_or_null(row.rule);
  i.text_or_null(row.reason);
  i.text_or_null(detail.text("surface"));
  i.text_or_null(row.principal);
  i.text_or_null(row.trace_id);
  i.text_or_null(detail.text("scope"));
  i.integer(static_cast<std::int64_t>(row.number));
  i.text_or_null(row.claimed_name);
  return i.finish(head) == SQLITE_DONE;
}

bool Tables::net(const Row &row, Head *head) {
  const Detail detail(row.detail);
  const std::string_view decision = detail.readable() ? detail.text("decision") : "";
  if (!is_one_of(decision, {"allowed", "denied", "error"})) return unreadable(row, head);
  const bool denied = decision == "denied";
  const std::string timestamp = time_text(row.start_unix_ns);
  auto &i = net_;
  begin(&i, *head, timestamp);
  i.text(detail.text("domain"));
  detail.add_number("port", &i);
  i.text(decision);
  i.text_or_null(row.process_name);
  i.text_or_null(detail.text("method"));
  i.text_or_null(detail.text("path"));
  detail.add_number("status_code", &i);
  i.integer(detail.number("bytes_sent"));
  i.integer(detail.number("bytes_received"));
  i.integer(detail.number("duration_ms"));
  i.text("enforce");
  i.text(denied ? "block" : "allow");
  i.text_or_null(detail.text("rule"));
  i.text_or_null(detail.text("reason"));
  i.text_or_null(row.trace_id);
  i.text(server_text(row));
  i.integer(static_cast<std::int64_t>(row.number));
  return i.finish(head) == SQLITE_DONE;
}

bool Tables::fs(const Row &row, Head *head) {
  const Detail detail(row.detail);
  if (!detail.readable() || detail.text("path").empty() ||
      !is_one_of(detail.text("action"), {"created", "modified", "deleted", "restored"})) {
    return unreadable(row, head);
  }
  const std::string timestamp = time_text(row.start_unix_ns);
  auto &i = fs_;
  begin(&i, *head, timestamp);
  i.text(detail.text("action"));
  i.text(detail.text("path"));
  detail.add_number("size", &i);
  i.text_or_null(row.trace_id);
  i.text(server_text(row));
  i.integer(static_cast<std::int64_t>(row.number));
  return i.finish(head) == SQLITE_DONE;
}

bool Tables::snapshot(const Row &row, Head *head) {
  const Detail detail(row.detail);
  if (!detail.readable() || detail.text("origin").empty() || !detail.has_number("slot")) {
    return unreadable(row, head);
  }
  const std::string timestamp = time_text(row.start_unix_ns);
  auto &i = snapshots_;
  begin(&i, *head, timestamp);
  i.integer(detail.number("slot"));
  i.text(detail.text("origin"));
  i.text_or_null(detail.text("name"));
  detail.add_number("files_count", &i);
  detail.add_number("start_fs_event_id", &i);
  detail.add_number("stop_fs_event_id", &i);
  i.text_or_null(row.trace_id);
  i.text(server_text(row));
  i.integer(static_cast<std::int64_t>(row.number));
  return i.finish(head) == SQLITE_DONE;
}

// Replaces the session identity. The row for the identity can change, so its table is not part of
// the chain.
bool Tables::identity(const Row &row, Head *head) {
  const Detail detail(row.detail);
  if (!detail.readable()) return unreadable(row, head);
  const std::string timestamp = time_text(row.start_unix_ns);
  const bool forgotten = forget_identity_.step() == SQLITE_DONE;
  forget_identity_.reset();
  if (!forgotten) return false;
  insert_identity_.bind(1, timestamp);
  insert_identity_.bind(2, detail.text("profile"));
  insert_identity_.bind(3, detail.text("user"));
  const bool done = insert_identity_.step() == SQLITE_DONE;
  insert_identity_.reset();
  return done;
}

// Records the policy that applies to the rows after this one.
bool Tables::policy(const Row &row, Head *head) {
  const Detail detail(row.detail);
  if (!detail.readable() || !detail.has_number("generation")) return unreadable(row, head);
  const std::int64_t rules = detail.number("rules");
  std::string text = "generation " + std::to_string(detail.number("generation")) + ": " +
                     std::to_string(rules) + (rules == 1 ? " rule" : " rules") + ", digest ";
  text.append(detail.text("digest")).append(", by ").append(detail.text("policies"));
  const std::string_view changes = detail.text("changes");
  if (!changes.empty()) text.append("; ").append(changes);
  // The time of the reload, not of the flush: decisions by the new rules are later.
  return mark("policy", text, row.start_unix_ns, head);
}

bool Tables::plugin(const Row &row, Head *head) {
  const Detail detail(row.detail);
  if (!detail.readable() || detail.text("plugin").empty()) return unreadable(row, head);
  std::string text(detail.text("plugin"));
  text.append(": ").append(detail.text("change"));
  return mark("plugin", text, row.start_unix_ns, head);
}

bool Tables::unreadable(const Row &row, Head *head) {
  return mark("unreadable",
              "record " + std::to_string(row.number) + " of kind " + std::to_string(row.kind) +
                  (row.server.empty() ? "" : " of server " + row.server) + " has an invalid detail",
              head);
}

bool Tables::mark(std::string_view kind, std::string_view detail, Head *head) {
  return mark(kind, detail, bh::unix_ns(), head);
}

bool Tables::mark(std::string_view kind, std::string_view detail, std::uint64_t unix_ns,
                  Head *head) {
  const std::string time = time_text(unix_ns);
  begin(&marks_, *head, time);
  marks_.text(kind);
  marks_.text_or_null(detail);
  return marks_.finish(head) == SQLITE_DONE;
}

}  // namespace telemetry_sqlite
