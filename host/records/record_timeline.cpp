// Implements `timeline`, which shows the events of all tables in chronological order.
#include <algorithm>

#include "bulkhead/cpp/json_writer.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/since.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "records/record_files.hpp"
#include "records/record_reader.hpp"

namespace bulkhead::program {
namespace {

constexpr std::uint64_t usual_rows = 200;

// Each query returns the columns timestamp, layer, ref, summary, status, duration_ms, trace_id and
// claimed_name.
struct Layer {
  std::string_view name, sql;
};
constexpr Layer layers[] = {
    {"mcp",
     "SELECT timestamp, 'mcp', id, "
     "server_name || '/' || coalesce(tool_name, target, method) || "
     "CASE WHEN policy_action IN ('block', 'ask', 'rewrite') THEN ' [' || policy_action || "
     "coalesce(' ' || policy_rule, '') || ']' ELSE '' END, "
     "CASE WHEN decision = 'allowed' AND flags & 65536 THEN 'tool error' ELSE decision END, "
     "duration_ms, trace_id, claimed_name FROM mcp_calls"},
    {"net",
     "SELECT timestamp, 'net', id, coalesce(method || ' ', '') || domain || coalesce(path, ''), "
     "decision, duration_ms, trace_id, NULL FROM net_events"},
    {"fs",
     "SELECT timestamp, 'fs', id, action || ' ' || path, action, NULL, trace_id, NULL FROM "
     "fs_events"},
    {"snapshot",
     "SELECT timestamp, 'snapshot', id, origin || coalesce(' ' || name, ''), 'taken', NULL, "
     "trace_id, NULL FROM snapshot_events"},
    {"security",
     "SELECT timestamp, 'security', id, event_family || coalesce(' ' || rule_id, '') || "
     "coalesce(': ' || reason, ''), final_action, NULL, trace_id, NULL FROM security_events"},
    {"security",
     "SELECT timestamp, 'security', id, 'approval ' || server_name || '/' || "
     "coalesce(tool_name, ''), status, NULL, trace_id, claimed_name FROM approvals"},
    {"audit",
     "SELECT timestamp, 'audit', id, coalesce(detail, kind), kind, NULL, NULL, NULL FROM "
     "audit_marks"}};

bool wants(std::string_view list, std::string_view layer) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view one = list.substr(0, comma);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.substr(0, one.find_last_not_of(' ') + 1) == layer) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

std::string query(const Arguments &arguments, const std::string &since) {
  const RecordArguments &wanted = arguments.records;
  std::string all;
  for (const Layer &layer : layers) {
    if (!wanted.layers.empty() && !wants(wanted.layers, layer.name)) continue;
    all += (all.empty() ? "" : " UNION ALL ") + std::string(layer.sql);
  }
  if (all.empty()) return {};
  std::string where = "1";
  if (!since.empty()) where += " AND timestamp >= " + sql_quoted(since);
  if (!wanted.trace.empty()) {
    where += " AND (trace_id IS NULL OR trace_id = " + sql_quoted(wanted.trace) + ")";
  }
  const std::uint64_t limit = wanted.limit == 0 ? usual_rows : wanted.limit;
  // The inner query selects the newest rows; the outer query sorts them in chronological order.
  return "WITH e (timestamp, layer, ref, summary, status, duration_ms, trace_id, claimed_name) AS "
         "(" +
         all + ") SELECT * FROM (SELECT * FROM e WHERE " + where +
         " ORDER BY timestamp DESC, ref DESC LIMIT " + std::to_string(limit) +
         ") ORDER BY timestamp, ref";
}

}  // namespace

int run_timeline(const Arguments &arguments) {
  if (!arguments.records.limit_note.empty()) complain(arguments.records.limit_note, exit_ok);
  std::string since;
  if (!arguments.records.since.empty()) {
    const auto text = since_text(arguments.records.since);
    if (!text) return complain(since_usage, exit_usage);
    since = *text;
  }
  const std::string sql = query(arguments, since);
  if (sql.empty()) {
    return complain("--layers has no valid layer; use mcp, net, fs, snapshot, security, audit",
                    exit_usage);
  }
  const auto found = find_records(arguments);
  if (!found) return complain(found.error().text);
  auto reader = RecordReader::open(found->newest_first());
  if (!reader) return complain(reader.error().text);
  note_unread(*reader);
  const bool utc = arguments.records.utc;
  Table table(
      {utc ? "TIME (UTC)" : "TIME", "LAYER", ">REF", "WHAT", "STATUS", ">MS", "TRACE", "CLAIMED"});
  std::string json;
  const auto answer = reader->run(sql, [&](const RecordReader::Answer &now, sqlite3_stmt *row) {
    std::vector<std::string> cells;
    json += json.empty() ? "{" : ",\n{";
    for (std::size_t i = 0; i < now.columns.size(); ++i) {
      const int column = static_cast<int>(i);
      const std::string value = printable(text_value(row, column));
      cells.push_back(first_line(i == 0 ? shown_time(value, utc) : value, 100));
      if (i > 0) json += ',';
      bh::json::append_quoted(&json, now.columns[i]);
      json += ':';
      append_json_value(&json, row, column);
    }
    json += '}';
    table.add(std::move(cells));
  });
  if (!answer) return complain(answer.error().text);
  return write_stdout(arguments.json ? "[" + json + "]\n" : table.str()) ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
