// Implements `calls`, which shows recorded calls and, with --follow, waits for new ones.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "bulkhead/cpp/json_writer.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/since.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "record-store/schema.hpp"
#include "records/record_files.hpp"
#include "records/record_reader.hpp"

namespace bulkhead::program {
namespace {

constexpr std::uint64_t default_rows = 20;
constexpr useconds_t poll_us = 300'000;
constexpr std::size_t max_name_columns = 60, max_client_columns = 40, max_claim_columns = 30,
                      max_note_columns = 100;

// The columns of a row, which are also the names of the JSON members. New columns must be added at
// the end.
constexpr std::string_view call_columns =
    "id, timestamp, server_name, method, coalesce(tool_name, target) AS name, decision, "
    "duration_ms, policy_rule, error_message, trace_id, flags, process_name, transport, "
    "claimed_name, client_revision, server_revision";
enum Column {
  id,
  timestamp,
  server,
  method,
  name,
  decision,
  duration_ms,
  rule,
  error,
  trace,
  flags,
  process_name,
  transport,
  claimed_name
};

// Excludes messages that every client sends besides its calls, unless they were denied or failed.
constexpr std::string_view not_handshake =
    " AND NOT (decision = 'allowed' AND (method IN ('initialize', 'notifications/initialized', "
    "'ping') OR method LIKE '%/list'))";

// `since` is a timestamp in the session database's format, or empty.
std::string filter_of(const Arguments &arguments, const std::string &since) {
  std::string out;
  if (!arguments.server.empty()) out += " AND server_name = " + sql_quoted(arguments.server);
  if (!arguments.records.tool.empty()) {
    out += " AND tool_name = " + sql_quoted(arguments.records.tool);
  }
  if (!since.empty()) out += " AND timestamp >= " + sql_quoted(since);
  const std::string failed = "decision = 'error' OR error_message IS NOT NULL OR (flags & " +
                             std::to_string(record_store::flag_tool_error) + ") != 0";
  if (arguments.records.denied && arguments.records.errors) {
    out += " AND (decision = 'denied' OR " + failed + ")";
  } else if (arguments.records.denied) {
    out += " AND decision = 'denied'";
  } else if (arguments.records.errors) {
    out += " AND decision <> 'denied' AND (" + failed + ")";
  }
  return out;
}

std::string note_of(sqlite3_stmt *row) {
  std::string out;
  const auto add = [&](const std::string &text) { out += (out.empty() ? "" : "; ") + text; };
  if (const std::string by = text_value(row, rule); !by.empty()) add("rule " + printable(by));
  const auto bits = static_cast<std::uint32_t>(sqlite3_column_int64(row, flags));
  if ((bits & record_store::flag_tool_error) != 0) add("the tool returned an error");
  if (const std::string text = text_value(row, error); !text.empty()) {
    add(first_line(printable(text), max_note_columns));
  }
  return out;
}

std::vector<std::string> cells_of(sqlite3_stmt *row, bool utc) {
  const auto text = [&](Column column) { return printable(text_value(row, column)); };
  const std::string process = text(process_name);
  return {shown_time(text(timestamp), utc),
          first_line(process.empty() ? text(transport) : process, max_client_columns),
          first_line(text(claimed_name), max_claim_columns),
          text(server),
          text(method),
          first_line(text(name), max_name_columns),
          text(decision),
          text(duration_ms),
          note_of(row)};
}

std::string as_json(const RecordReader::Answer &answer, sqlite3_stmt *row) {
  std::string out = "{";
  for (std::size_t i = 0; i < answer.columns.size(); ++i) {
    if (i > 0) out += ',';
    bh::json::append_quoted(&out, answer.columns[i]);
    out += ':';
    append_json_value(&out, row, static_cast<int>(i));
  }
  return out + "}\n";
}

class Calls {
 public:
  Calls(const Arguments &arguments, const std::string &since)
      : json_(arguments.json),
        utc_(arguments.records.utc),
        follow_(arguments.records.follow),
        filter_(filter_of(arguments, since)),
        hides_handshakes_(!arguments.all && !arguments.json),
        table_({utc_ ? "TIME (UTC)" : "TIME", "CLIENT", "CLAIMED", "SERVER", "METHOD", "NAME",
                "DECISION", ">MS", "NOTE"}) {}

  // Reads the rows in this file that have been added to its chain since the last read. If more than
  // `limit` rows match the filter, only the newest ones are read.
  Result<void> read(const record_store::SegmentFile &file, std::uint64_t limit) {
    std::int64_t &read_to = read_to_[key(file)];
    auto reader = RecordReader::open({file});
    if (!reader) return std::unexpected(reader.error());
    // The last ID is read first, so that the next poll skips the rows that do not match the filter.
    std::int64_t last = read_to;
    const auto end =
        reader->run("SELECT coalesce(max(id), 0) FROM mcp_calls",
                    [&](const auto &, sqlite3_stmt *row) { last = sqlite3_column_int64(row, 0); });
    if (!end) return std::unexpected(end.error());
    const std::string sql = "SELECT * FROM (SELECT " + std::string(call_columns) +
                            " FROM mcp_calls WHERE id > " + std::to_string(read_to) +
                            " AND id <= " + std::to_string(last) + filter_ +
                            std::string(hides_handshakes_ ? not_handshake : "") +
                            " ORDER BY id DESC LIMIT " + std::to_string(limit) + ") ORDER BY id";
    const auto answer = reader->run(sql, [&](const RecordReader::Answer &now, sqlite3_stmt *row) {
      Line line;
      line.time = text_value(row, timestamp);
      line.place = lines_.size();
      json_ ? void(line.json = as_json(now, row)) : void(line.cells = cells_of(row, utc_));
      lines_.push_back(std::move(line));
    });
    if (!answer) return std::unexpected(answer.error());
    read_to = std::max(read_to, last);
    return {};
  }

  // Prints the rows that have been read since the last call, in chronological order. If there are
  // more than `limit` rows, only the newest are printed. Returns false if standard output was
  // closed.
  bool write(std::uint64_t limit) {
    std::sort(lines_.begin(), lines_.end(), [](const Line &a, const Line &b) {
      return std::tie(a.time, a.place) < std::tie(b.time, b.place);
    });
    const std::size_t from = lines_.size() - std::min<std::size_t>(lines_.size(), limit);
    std::string out;
    for (std::size_t i = from; i < lines_.size(); ++i) {
      json_ ? void(out += lines_[i].json) : table_.add(std::move(lines_[i].cells));
    }
    lines_.clear();
    if (!json_) out = follow_ ? table_.take_rows() : text();
    return out.empty() || write_stdout(out);
  }

 private:
  struct Line {
    std::string time;
    std::size_t place = 0;  // keeps the order of rows with the same time
    std::vector<std::string> cells;
    std::string json;
  };

  std::string text() const {
    if (!table_.empty()) return table_.str();
    if (!filter_.empty()) return "No recorded call matches.\n";
    return hides_handshakes_ ? "No calls are recorded; --all includes handshakes and lists.\n"
                             : "No calls are recorded.\n";
  }

  // Returns the key of the chain to which the file belongs. IDs ascend within a chain.
  static std::string key(const record_store::SegmentFile &file) {
    return file.path.substr(0, file.path.rfind('/') + 1) + std::to_string(file.chain);
  }

  const bool json_, utc_, follow_;
  const std::string filter_;
  const bool hides_handshakes_;
  Table table_;
  std::map<std::string, std::int64_t> read_to_;  // last ID by chain
  std::vector<Line> lines_;
};

}  // namespace

int run_calls(const Arguments &arguments) {
  if (!arguments.records.limit_note.empty()) complain(arguments.records.limit_note, exit_ok);
  const std::uint64_t limit = arguments.records.limit == 0 ? default_rows : arguments.records.limit;
  const auto since = arguments.records.since.empty() ? std::optional<std::string>("")
                                                     : since_text(arguments.records.since);
  if (!since) return complain(since_usage, exit_usage);
  Calls calls(arguments, *since);
  auto found = find_records(arguments);
  if (!found) return complain(found.error().text);
  // The newest files contain at least `limit` rows. Each chain's files are read from oldest to
  // newest, so rows are read in ascending ID order.
  std::vector<std::string> left_out;
  auto files = RecordReader::usable(found->newest_first(), &left_out);
  note_left_out(left_out);
  if (files.size() > RecordReader::max_files) files.resize(RecordReader::max_files);
  std::sort(files.begin(), files.end(), [](const auto &a, const auto &b) {
    return a.chain != b.chain ? a.chain < b.chain : a.number < b.number;
  });
  if (files.empty() && !arguments.records.follow) return complain("no session database file found");
  // A damaged file must not hide the rows of the others.
  std::size_t unread = 0;
  for (const auto &file : files) {
    if (auto read = calls.read(file, limit); !read) {
      complain(read.error().text);
      ++unread;
    }
  }
  if (unread == files.size() && !arguments.records.follow) return exit_failed;
  if (!calls.write(limit)) return exit_failed;
  while (arguments.records.follow) {
    ::usleep(poll_us);
    auto now = find_records(arguments);
    if (!now) return complain(now.error().text);
    for (const auto &folder : now->folders) {
      for (std::size_t i = 0; i < folder.files.size(); ++i) {
        // A new file may have been started since the last poll, so the last two files of each chain
        // are read.
        const bool recent =
            i + 2 >= folder.files.size() || folder.files[i + 2].chain != folder.files[i].chain;
        if (recent) (void)calls.read(folder.files[i], RecordReader::max_rows);
      }
    }
    if (!calls.write(RecordReader::max_rows)) return exit_failed;
  }
  return exit_ok;
}

}  // namespace bulkhead::program
