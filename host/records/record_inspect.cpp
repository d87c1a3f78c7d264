// Implements `inspect`, which runs an SQL query on the session database.
#include <signal.h>
#include <unistd.h>

#include <string_view>

#include "bulkhead/cpp/json_writer.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "record-store/schema.hpp"
#include "records/record_files.hpp"
#include "records/record_reader.hpp"

namespace bulkhead::program {
namespace {

constexpr std::size_t max_cell_columns = 100;

std::string as_json(RecordReader &reader, std::string_view sql, Result<RecordReader::Answer> *out) {
  std::string rows;
  *out = reader.run(sql, [&](const RecordReader::Answer &answer, sqlite3_stmt *row) {
    rows += rows.empty() ? "[" : ",\n[";
    for (std::size_t i = 0; i < answer.columns.size(); ++i) {
      if (i > 0) rows += ',';
      append_json_value(&rows, row, static_cast<int>(i));
    }
    rows += ']';
  });
  if (!*out) return {};
  std::string text = "{";
  bh::json::append_member(&text, "columns", (*out)->columns);
  text += ",\"rows\":[" + rows + "]";
  if ((*out)->cut) text += ",\"truncated\":true";
  return text + "}\n";
}

std::string as_table(RecordReader &reader, std::string_view sql,
                     Result<RecordReader::Answer> *out) {
  std::vector<std::vector<std::string>> rows;
  *out = reader.run(sql, [&](const RecordReader::Answer &answer, sqlite3_stmt *row) {
    auto &cells = rows.emplace_back();
    for (std::size_t i = 0; i < answer.columns.size(); ++i) {
      cells.push_back(
          first_line(printable(text_value(row, static_cast<int>(i))), max_cell_columns));
    }
  });
  if (!*out) return {};
  std::vector<std::string> headers;
  for (const std::string &column : (*out)->columns) headers.push_back(printable(column));
  Table table(std::move(headers), Table::Empty::keep);
  for (auto &row : rows) table.add(std::move(row));
  return table.str();
}

// Terminates the process if the query still runs one second after RecordReader's time limit.
// RecordReader checks its limit only between steps of the query, and a single step may take longer.
void end_in_time() {
  ::signal(SIGALRM, [](int) {
    constexpr std::string_view text =
        "bulkhead: the query was stopped because a single step took too long; narrow the query, "
        "for example by timestamp\n";
    static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
    ::_exit(exit_failed);
  });
  ::alarm(RecordReader::max_ms / 1000 + 1);
}

}  // namespace

int run_inspect(const Arguments &arguments) {
  if (arguments.records.schema) {
    return write_stdout(record_store::schema_sql()) ? exit_ok : exit_failed;
  }
  if (arguments.records.sql.empty()) {
    return complain(
        "inspect requires a query, for example \"SELECT * FROM mcp_calls\", or --schema",
        exit_usage);
  }
  const auto found = find_records(arguments);
  if (!found) return complain(found.error().text);
  const auto files = found->newest_first();
  auto reader = RecordReader::open(files);
  if (!reader) return complain(reader.error().text);
  Result<RecordReader::Answer> answer;
  end_in_time();
  const std::string text = arguments.json ? as_json(*reader, arguments.records.sql, &answer)
                                          : as_table(*reader, arguments.records.sql, &answer);
  ::alarm(0);
  if (!answer) return complain(answer.error().text);
  const bool written = write_stdout(text);
  if (answer->cut) {
    complain("output truncated after " + counted(answer->rows, "row"), exit_ok);
  }
  note_unread(*reader);
  return written ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
