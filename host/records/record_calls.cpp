// Implements `calls`, which shows recorded calls and, with --follow, waits for new ones.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "bulkhead/cpp/json_writer.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/since.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "record-store/schema.hpp"
#include "records/call_filter.hpp"
#include "records/record_files.hpp"
#include "records/record_reader.hpp"
#include "route/shown_json.hpp"

namespace bulkhead::program {
namespace {

constexpr std::uint64_t default_rows = 20;
constexpr useconds_t poll_us = 300'000;
constexpr std::size_t max_name_columns = 60, max_client_columns = 40, max_claim_columns = 30,
                      max_note_columns = 100, max_argument_bytes = 200;

// The columns of a row, which are also the names of the JSON members. New columns must be added at
// the end.
constexpr std::string_view call_columns =
    "id, timestamp, server_name, method, coalesce(tool_name, target) AS name, decision, "
    "duration_ms, policy_rule, error_message, trace_id, flags, process_name, transport, "
    "claimed_name, session, client_revision, server_revision";
constexpr std::string_view arguments_column = ", request_preview";  // with --args
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
  claimed_name,
  session,
  client_revision,
  server_revision,
  request  // only with --args
};

// Excludes messages that every client sends besides its calls, unless they were denied or failed.
constexpr std::string_view not_handshake =
    " AND NOT (decision = 'allowed' AND (method IN ('initialize', 'notifications/initialized', "
    "'ping') OR method LIKE '%/list'))";

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

// Returns the beginning of the call's arguments, or of all parameters if there are no arguments.
// Credentials were masked when the call was recorded; shown_json() also makes hidden characters
// visible.
std::string arguments_of(sqlite3_stmt *row) {
  const std::string params = text_value(row, request);
  if (!mcp::valid_json(params)) return visible_text(masked_text(params), max_argument_bytes);
  std::string_view shown = params.starts_with('{') ? mcp::member(params, "arguments") : params;
  if (shown.empty()) shown = params;
  ShownJson out = shown_json(shown, max_argument_bytes);
  return out.text + (out.cut ? "..." : "");
}

std::vector<std::string> cells_of(sqlite3_stmt *row, bool utc, bool args) {
  const auto text = [&](Column column) { return printable(text_value(row, column)); };
  const std::string process = text(process_name);
  std::vector<std::string> out{
      shown_time(text(timestamp), utc),
      first_line(process.empty() ? text(transport) : process, max_client_columns),
      first_line(text(claimed_name), max_claim_columns),
      text(server),
      text(method),
      first_line(text(name), max_name_columns),
      text(decision),
      text(duration_ms)};
  if (args) {
    out.push_back(text(session));
    out.push_back(printable(arguments_of(row)));
  }
  out.push_back(note_of(row));
  return out;
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

// With --follow, the headers are printed before the widths of the cells are known, and have the
// widths that most cells need.
std::vector<std::string> headers_of(bool utc, bool args, bool follow) {
  std::vector<std::string> out{utc ? "TIME (UTC)" : "TIME",
                               "CLIENT",
                               "CLAIMED",
                               "SERVER",
                               "METHOD",
                               "NAME",
                               "DECISION",
                               ">MS"};
  if (args) out.insert(out.end(), {"SESSION", "ARGUMENTS"});
  out.emplace_back("NOTE");
  if (!follow) return out;
  constexpr std::size_t widths[] = {23, 8, 12, 10, 10, 16};
  for (std::size_t i = 0; i < std::size(widths); ++i) {
    out[i].resize(std::max(out[i].size(), widths[i]), ' ');
  }
  return out;
}

class Calls {
 public:
  // `filter` is the result of CallFilter::sql().
  Calls(const Arguments &arguments, std::string filter)
      : json_(arguments.json),
        utc_(arguments.records.utc),
        args_(arguments.records.args),
        follow_(arguments.records.follow),
        filter_(std::move(filter)),
        hides_handshakes_(!arguments.all && !arguments.json),
        table_(headers_of(utc_, args_, follow_)) {}

  // Returns true if no row has been read since the last call of write().
  bool empty() const noexcept { return lines_.empty(); }

  // Drops all rows except the newest `limit`, so that memory does not grow with the number of
  // files.
  void keep_newest(std::uint64_t limit) {
    if (lines_.size() <= limit) return;
    sort_lines();
    lines_.erase(lines_.begin(), lines_.end() - static_cast<std::ptrdiff_t>(limit));
  }

  // Reads the rows in this file that have been added to its chain since the last read. If more than
  // `limit` rows match the filter, only the newest ones are read.
  Result<void> read(const record_store::SegmentFile &file, std::uint64_t limit) {
    std::int64_t &read_to = read_to_[key(file)];
    auto reader = RecordReader::open({file});
    if (!reader) return std::unexpected(reader.error());
    // The last ID in the file is read first, so that the next poll also skips rows that do not
    // match the filter.
    std::int64_t last = read_to;
    const auto end =
        reader->run("SELECT coalesce(max(id), 0) FROM mcp_calls",
                    [&](const auto &, sqlite3_stmt *row) { last = sqlite3_column_int64(row, 0); });
    if (!end) return std::unexpected(end.error());
    const std::string sql = "SELECT * FROM (SELECT " + std::string(call_columns) +
                            std::string(args_ ? arguments_column : "") +
                            " FROM mcp_calls WHERE id > " + std::to_string(read_to) +
                            " AND id <= " + std::to_string(last) + filter_ +
                            std::string(hides_handshakes_ ? not_handshake : "") +
                            " ORDER BY id DESC LIMIT " + std::to_string(limit) + ") ORDER BY id";
    const auto answer = reader->run(sql, [&](const RecordReader::Answer &now, sqlite3_stmt *row) {
      Line line;
      line.time = text_value(row, timestamp);
      line.place = ++lines_read_;
      json_ ? void(line.json = as_json(now, row)) : void(line.cells = cells_of(row, utc_, args_));
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
    sort_lines();
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
    std::uint64_t place = 0;  // keeps the order of rows with the same time
    std::vector<std::string> cells;
    std::string json;
  };

  void sort_lines() {
    std::sort(lines_.begin(), lines_.end(), [](const Line &a, const Line &b) {
      return std::tie(a.time, a.place) < std::tie(b.time, b.place);
    });
  }

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

  const bool json_, utc_, args_, follow_;
  const std::string filter_;
  const bool hides_handshakes_;
  Table table_;
  std::map<std::string, std::int64_t> read_to_;  // last ID by chain
  std::vector<Line> lines_;
  std::uint64_t lines_read_ = 0;
};

// Reads the names that occur in the newest files. Returns an error if a query fails.
Result<RecordedNames> recorded_names(const RecordFiles &found) {
  auto reader = RecordReader::open(found.newest_first());
  if (!reader) return std::unexpected(reader.error());
  RecordedNames out;
  const auto read = [&](std::string_view sql, const auto &add) {
    return reader->run(sql, [&](const auto &, sqlite3_stmt *row) { add(row); });
  };
  if (auto done = read("SELECT DISTINCT server_name FROM mcp_calls",
                       [&](sqlite3_stmt *row) { out.servers.push_back(text_value(row, 0)); });
      !done) {
    return std::unexpected(done.error());
  }
  if (auto done =
          read("SELECT DISTINCT server_name, tool_name FROM mcp_calls WHERE tool_name IS NOT NULL",
               [&](sqlite3_stmt *row) {
                 out.tools.emplace_back(text_value(row, 0), text_value(row, 1));
               });
      !done) {
    return std::unexpected(done.error());
  }
  if (auto done = read("SELECT claimed_name FROM mcp_calls WHERE claimed_name <> '' UNION "
                       "SELECT process_name FROM mcp_calls WHERE process_name <> ''",
                       [&](sqlite3_stmt *row) { out.clients.push_back(text_value(row, 0)); });
      !done) {
    return std::unexpected(done.error());
  }
  return out;
}

// Reads the files and returns the number of files that cannot be read. A damaged file must not hide
// the rows of the others.
std::size_t read_all(Calls &calls, const std::vector<record_store::SegmentFile> &files,
                     std::uint64_t limit) {
  std::size_t unread = 0;
  for (const auto &file : files) {
    if (auto read = calls.read(file, limit); !read) {
      complain(read.error().text);
      ++unread;
    }
    calls.keep_newest(limit);
  }
  return unread;
}

// Prints the new rows of the files until standard output is closed or an error occurs.
int follow(Calls &calls, const Arguments &arguments) {
  while (true) {
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
}

}  // namespace

int run_calls(const Arguments &arguments) {
  const RecordArguments &wanted = arguments.records;
  if (!wanted.limit_note.empty()) complain(wanted.limit_note, exit_ok);
  const std::uint64_t limit = wanted.limit == 0 ? default_rows : wanted.limit;
  const auto since =
      wanted.since.empty() ? std::optional<std::string>("") : since_text(wanted.since);
  if (!since) return complain(since_usage, exit_usage);
  auto found = find_records(arguments);
  if (!found) return complain(found.error().text);
  // Each chain's files are read from oldest to newest, so rows are read in ascending ID order.
  std::vector<std::string> left_out;
  auto files = RecordReader::usable(found->newest_first(), &left_out);
  note_left_out(left_out);
  std::sort(files.begin(), files.end(), [](const auto &a, const auto &b) {
    return a.chain != b.chain ? a.chain < b.chain : a.number < b.number;
  });
  if (files.empty() && !wanted.follow) return complain("no session database file found");
  CallFilter filter(wanted, arguments.server, *since, found->naming);
  auto calls = std::make_unique<Calls>(arguments, filter.sql());
  const std::size_t unread = read_all(*calls, files, limit);
  if (unread == files.size() && !wanted.follow) return exit_failed;
  if (calls->empty() && !filter.sql().empty()) {
    // Without the names, the command only reports that no call matches.
    const RecordedNames names = recorded_names(*found).value_or(RecordedNames{});
    if (filter.add_shortened(names)) {
      calls = std::make_unique<Calls>(arguments, filter.sql());
      read_all(*calls, files, limit);
    } else if (const auto unknown = filter.unknown_name(names, found->servers);
               unknown && !names.servers.empty()) {
      complain(*unknown);
      if (!wanted.follow) return exit_failed;
    }
  }
  if (!calls->write(limit)) return exit_failed;
  return wanted.follow ? follow(*calls, arguments) : exit_ok;
}

}  // namespace bulkhead::program
