// Implements `policy replay`, which evaluates recorded calls with the current rules and reports the
// decisions that differ. Calls no tools.
#include <algorithm>
#include <map>

#include "bulkhead/cpp/json.hpp"
#include "command_line/commands.hpp"
#include "commands/profile_policies.hpp"
#include "common/console.hpp"
#include "common/since.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "records/record_files.hpp"
#include "records/record_reader.hpp"

namespace bulkhead::program {
namespace {

using bh::json::append_member;
using bh::json::member_text;
using bh::json::Raw;

constexpr std::uint64_t rows_at_once = 500;
constexpr std::uint64_t max_calls = 1'000'000;
constexpr int request_cut = 4, response_cut = 8, not_sent = 16;  // flags in mcp_calls.flags

constexpr std::string_view columns =
    "id, timestamp, server_name, method, target, request_preview, response_preview, outcome, "
    "coalesce(policy_action, 'allow'), policy_rule, transport, peer, principal, process_name, "
    "session, flags, claimed_name";
enum Column {
  id,
  timestamp,
  server,
  method,
  target,
  request,
  response,
  outcome,
  action,
  rule,
  transport,
  peer,
  principal,
  process_name,
  session,
  flags,
  claimed_name
};

struct Changed {
  std::string timestamp, id, call, then, then_rule, now, now_rule, reason;
};

// Adds the members of `params` to the call, except arguments and _meta.
void add_beside(std::string *call, std::string_view method, std::string_view params) {
  std::string message = R"({"jsonrpc":"2.0","id":1,"method":)";
  bh::json::append_quoted(&message, method);
  message.append(",\"params\":").append(params).append("}");
  mcp::Scan scan;
  mcp::ScanError error;
  if (!mcp::scan(message, &scan, &error)) return;
  const std::string extra = mcp::extra_params(message, scan);
  if (!extra.empty()) append_member(call, "extra", Raw{extra});
  if (scan.method != mcp::Method::completion_complete) return;
  if (!scan.argument.empty()) append_member(call, "argument", Raw{scan.argument.in(message)});
  if (!scan.context.empty()) append_member(call, "context", Raw{scan.context.in(message)});
}

void add_known(std::string *json, std::string_view name, std::string_view value) {
  if (!value.empty()) append_member(json, name, value);
}

// Returns true if the recorded decision was made by a policy's rule. Decisions made by the gateway
// itself have either no rule or one of these names.
bool is_by_rule(std::string_view rule) {
  return !rule.empty() && rule != "tool-pin" && rule != "policy-failed" && rule != "policy-timeout";
}

class Replay {
 public:
  explicit Replay(const ProfilePolicies &policies) : policies_(policies) {}

  // Evaluates the calls in this file that were made at or after the time `since`.
  Result<void> read(const record_store::SegmentFile &file, const std::string &since) {
    if (stopped_) return {};
    auto reader = RecordReader::open({file});
    if (!reader) return std::unexpected(reader.error());
    std::string last = "0";
    for (bool more = true; more && looked_at_ < max_calls;) {
      const std::string sql =
          "SELECT " + std::string(columns) + " FROM mcp_calls WHERE id > " + last +
          " AND timestamp >= '" + since +
          "' AND method IN ('tools/call', 'prompts/get', 'resources/read') AND target IS NOT NULL "
          "AND server_name NOT IN ('gateway', '*') ORDER BY id LIMIT " +
          std::to_string(rows_at_once);
      Result<void> looked;
      const auto answer = reader->run(sql, [&](const RecordReader::Answer &, sqlite3_stmt *row) {
        last = text_value(row, id);
        if (looked) looked = look(row);
      });
      if (!answer) return std::unexpected(answer.error());
      if (!looked) return looked;
      more = answer->rows > 0;
      stopped_ = more && looked_at_ >= max_calls;
    }
    return {};
  }

  std::string text() const {
    Table table({"TIME", ">ROW", "CALL", "THEN", "NOW", "REASON"});
    const auto with = [](const std::string &decision, const std::string &by) {
      return by.empty() ? decision : decision + " (" + by + ")";
    };
    for (const Changed &one : changed_) {
      table.add({one.timestamp, one.id, printable(one.call),
                 printable(with(one.then, one.then_rule)), printable(with(one.now, one.now_rule)),
                 first_line(printable(one.reason), 60)});
    }
    std::string out = changed_.empty() ? "" : table.str();
    out += counted(looked_at_, "recorded call") + ", " + std::to_string(changed_.size()) +
           " would be decided differently\n";
    if (stopped_)
      out +=
          "There may be more: further calls were not evaluated; use --since to narrow the range\n";
    for (const auto &[why, count] : left_out_) {
      out += std::to_string(count) + " could not be evaluated: " + why + "\n";
    }
    return out;
  }

  std::string json() const {
    std::string out = "{\"calls\":" + std::to_string(looked_at_) + ",\"left_out\":{";
    for (const auto &[why, count] : left_out_) {
      if (out.back() != '{') out += ',';
      bh::json::append_quoted(&out, why);
      out += ":" + std::to_string(count);
    }
    out += "},\"changed\":[";
    for (const Changed &one : changed_) {
      std::string entry = "{";
      add_known(&entry, "timestamp", one.timestamp);
      append_member(&entry, "id", Raw{one.id});
      add_known(&entry, "call", one.call);
      add_known(&entry, "then", one.then);
      add_known(&entry, "then_rule", one.then_rule);
      add_known(&entry, "now", one.now);
      add_known(&entry, "now_rule", one.now_rule);
      add_known(&entry, "reason", one.reason);
      out += (out.back() == '[' ? "" : ",\n") + entry + "}";
    }
    return out + (stopped_ ? "],\"truncated\":true}\n" : "]}\n");
  }

 private:
  Result<void> look(sqlite3_stmt *row) {
    ++looked_at_;
    const std::uint64_t calls = ++calls_of_[text_value(row, session)];
    const std::string then = text_value(row, action);
    const std::string params = text_value(row, request);
    const int bits = std::atoi(text_value(row, flags).c_str());
    const std::string_view arguments =
        mcp::valid_json(params) ? mcp::member(params, "arguments") : std::string_view();
    if (mcp::member(arguments, "redacted_by_policy") == "true") {
      return leave_out("the arguments of a rejected call are not recorded");
    }
    if (params.empty() || (bits & request_cut) != 0) {
      return leave_out("the recorded request is incomplete");
    }
    if (then == "rewrite") {
      return leave_out("a rule rewrote it, and the original request is not recorded");
    }
    if (then == "block" && (bits & not_sent) == 0) {
      return leave_out("its result was blocked and is not recorded");
    }
    if (then == "block" && !is_by_rule(text_value(row, rule))) {
      return leave_out("it was not rejected by a rule");
    }
    std::string call = "{";
    add_known(&call, "server", text_value(row, server));
    add_known(&call, "name", text_value(row, target));
    add_known(&call, "method", text_value(row, method));
    if (!arguments.empty()) append_member(&call, "arguments", Raw{arguments});
    const std::string_view meta = mcp::member(params, "_meta");
    if (!meta.empty()) append_member(&call, "meta", Raw{meta});
    add_beside(&call, text_value(row, method), params);
    add_known(&call, "transport", text_value(row, transport));
    add_known(&call, "peer", text_value(row, peer));
    add_known(&call, "principal", text_value(row, principal));
    add_known(&call, "process_name", text_value(row, process_name));
    add_known(&call, "claimed_name", text_value(row, claimed_name));
    append_member(&call, "session_calls", Raw{std::to_string(calls)});
    const std::string result = text_value(row, response);
    const bool has_result = text_value(row, outcome) == "ok" && (bits & response_cut) == 0;
    if (has_result && result.starts_with('{')) append_member(&call, "result", Raw{result});
    const auto said = policies_.explain(call + "}");
    if (!said) {
      if (said.error().code == BH_E_UNSUPPORTED) return std::unexpected(said.error());
      return leave_out(said.error().text);
    }
    return compare(row, *said);
  }

  Result<void> leave_out(const std::string &why) {
    ++left_out_[why];
    return {};
  }

  // Compares the recorded decision with the current one. If the current rules let the request
  // through but do not simply allow the response, the decision about the response counts.
  Result<void> compare(sqlite3_stmt *row, std::string_view said) {
    std::string_view answer = mcp::member(said, "request");
    const std::string_view later = mcp::member(said, "response");
    const auto decision = [](std::string_view of) { return member_text(of, "decision"); };
    const bool goes_on = decision(answer) == "allow" || decision(answer) == "rewrite";
    if (goes_on && !later.empty() && decision(later) != "allow") answer = later;
    const std::string now = decision(answer), then = text_value(row, action);
    if (now == "unknown") return leave_out(member_text(answer, "reason"));
    if (now == then) return {};
    changed_.push_back({text_value(row, timestamp), text_value(row, id),
                        text_value(row, server) + "/" + text_value(row, target), then,
                        text_value(row, rule), now, member_text(answer, "rule"),
                        member_text(answer, "reason")});
    return {};
  }

  const ProfilePolicies &policies_;
  std::uint64_t looked_at_ = 0;
  bool stopped_ = false;  // max_calls calls were evaluated
  std::vector<Changed> changed_;
  std::map<std::string, std::uint64_t> left_out_, calls_of_;
};

}  // namespace

int run_policy_replay(const Arguments &arguments) {
  const auto since = since_text(arguments.records.since);
  if (!since) return complain(since_usage, exit_usage);
  ProfilePolicies policies(arguments);
  if (!policies.load()) return exit_failed;
  const auto found = find_records(arguments);
  if (!found) return complain(found.error().text);
  Replay replay(policies);
  std::vector<record_store::SegmentFile> files;
  for (const auto &folder : found->folders) {
    files.insert(files.end(), folder.files.begin(), folder.files.end());
  }
  std::vector<std::string> left_out;
  files = RecordReader::usable(std::move(files), &left_out);
  note_left_out(left_out);
  if (files.empty()) return complain("no session database file found");
  for (const auto &file : files) {
    if (auto read = replay.read(file, *since); !read) return complain(read.error().text);
  }
  return write_stdout(arguments.json ? replay.json() : replay.text()) ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
