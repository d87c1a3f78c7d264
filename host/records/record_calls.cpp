// calls: the last ones, and those that come.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "record-store/schema.hpp"
#include "records/record_files.hpp"
#include "records/record_reader.hpp"

namespace bulkhead::program {
namespace {

constexpr std::uint64_t usual_rows = 20;
constexpr useconds_t look_us = 300'000;

constexpr std::string_view columns =
    "id, timestamp, server_name, method, coalesce(tool_name, target) AS name, decision, "
    "duration_ms, policy_rule, error_message, trace_id, flags";

// "12:34:56.789  local  tools/call read  allowed  12 ms"
std::string as_line(sqlite3_stmt *row) {
  const auto text = [&](int column) { return printable(text_value(row, column)); };
  const std::string time = text(1);
  std::string out = time.size() == 24 ? time.substr(11, 12) : time;
  out += "  " + text(5) + (text(5).size() < 7 ? "   " : " ");
  out += text(2) + "  " + text(3);
  if (const std::string name = text(4); !name.empty()) out += " " + first_line(name, 60);
  out += "  " + text(6) + " ms";
  if (const std::string rule = text(7); !rule.empty()) out += "  [" + rule + "]";
  const auto flags = static_cast<std::uint32_t>(sqlite3_column_int64(row, 10));
  if ((flags & record_store::flag_tool_error) != 0) out += "  the tool says: error";
  if (const std::string error = text(8); !error.empty()) out += "  " + first_line(error, 100);
  return out + "\n";
}

std::string as_json(const RecordReader::Answer &answer, sqlite3_stmt *row) {
  std::string out = "{";
  for (std::size_t i = 0; i < answer.columns.size(); ++i) {
    if (i > 0) out += ',';
    mcp::append_quoted(&out, answer.columns[i]);
    out += ':';
    append_json_value(&out, row, static_cast<int>(i));
  }
  return out + "}\n";
}

class Calls {
 public:
  explicit Calls(const Arguments &arguments) : json_(arguments.json) {}

  // Rows of one file behind what was shown of its chain, at most the newest `limit`.
  Result<void> show(const record_store::SegmentFile &file, std::uint64_t limit) {
    std::int64_t &seen = seen_[key(file)];
    auto reader = RecordReader::open({file});
    if (!reader) return std::unexpected(reader.error());
    const std::string sql = "SELECT * FROM (SELECT " + std::string(columns) +
                            " FROM mcp_calls WHERE id > " + std::to_string(seen) +
                            " ORDER BY id DESC LIMIT " + std::to_string(limit) + ") ORDER BY id";
    const auto answer = reader->run(sql, [&](const RecordReader::Answer &now, sqlite3_stmt *row) {
      seen = std::max(seen, static_cast<std::int64_t>(sqlite3_column_int64(row, 0)));
      lines_.emplace_back(text_value(row, 1), lines_.size(),
                          json_ ? as_json(now, row) : as_line(row));
    });
    if (!answer) return std::unexpected(answer.error());
    return {};
  }
  // What show() has found, by time, at most the newest `limit`; false: nobody reads it any more.
  bool write(std::uint64_t limit) {
    std::sort(lines_.begin(), lines_.end());  // those of one moment as they were found
    std::string out;
    const std::size_t from = lines_.size() - std::min<std::size_t>(lines_.size(), limit);
    for (std::size_t i = from; i < lines_.size(); ++i) out += std::get<2>(lines_[i]);
    lines_.clear();
    return out.empty() || write_stdout(out);
  }

 private:
  // Ids go on from file to file of a chain.
  static std::string key(const record_store::SegmentFile &file) {
    return file.path.substr(0, file.path.rfind('/') + 1) + std::to_string(file.chain);
  }

  const bool json_;
  std::map<std::string, std::int64_t> seen_;
  std::vector<std::tuple<std::string, std::size_t, std::string>> lines_;  // time, place, line
};

}  // namespace

int run_calls(const Arguments &arguments) {
  if (!arguments.records.limit_note.empty()) complain(arguments.records.limit_note, exit_ok);
  const std::uint64_t limit = arguments.records.limit == 0 ? usual_rows : arguments.records.limit;
  Calls calls(arguments);
  auto found = find_records(arguments);
  if (!found) return complain(found.error().text);
  // Newest first is enough for so many rows; ids of older files would hide those of newer ones.
  std::vector<std::string> left_out;
  auto files = RecordReader::usable(found->newest_first(), &left_out);
  note_left_out(left_out);
  if (files.size() > RecordReader::max_files) files.resize(RecordReader::max_files);
  std::sort(files.begin(), files.end(), [](const auto &a, const auto &b) {
    return a.chain != b.chain ? a.chain < b.chain : a.number < b.number;
  });
  if (files.empty() && !arguments.records.follow) return complain("there is no file to read");
  // One that turns out to be damaged must not hide the others.
  std::size_t unread = 0;
  for (const auto &file : files) {
    if (auto shown = calls.show(file, limit); !shown) {
      complain(shown.error().text);
      ++unread;
    }
  }
  if (unread == files.size() && !arguments.records.follow) return exit_failed;
  if (!calls.write(limit)) return exit_failed;
  while (arguments.records.follow) {
    ::usleep(look_us);
    auto now = find_records(arguments);
    if (!now) return complain(now.error().text);
    for (const auto &folder : now->folders) {
      for (std::size_t i = 0; i < folder.files.size(); ++i) {
        // The last two of a chain: one may have been full since.
        const bool recent =
            i + 2 >= folder.files.size() || folder.files[i + 2].chain != folder.files[i].chain;
        if (recent) (void)calls.show(folder.files[i], RecordReader::max_rows);
      }
    }
    if (!calls.write(RecordReader::max_rows)) return exit_failed;
  }
  return exit_ok;
}

}  // namespace bulkhead::program
