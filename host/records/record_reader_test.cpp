#include <catch2/catch.hpp>

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "mcp/scan.hpp"
#include "record-store/schema.hpp"
#include "records/record_reader.hpp"

using namespace bulkhead;
using namespace bulkhead::program;
using record_store::Database;
using record_store::SegmentFile;

namespace {

struct Files {
  std::string folder;
  std::vector<SegmentFile> all;

  // The first `old` files have the schema `earlier`.
  explicit Files(std::uint32_t count, int rows = 3, std::uint32_t old = 0,
                 int earlier = record_store::schema_version - 1) {
    std::string name = std::filesystem::temp_directory_path() / "record-reader-XXXXXX";
    folder = ::mkdtemp(name.data());
    for (std::uint32_t number = count; number >= 1; --number) {
      Database db;
      SegmentFile file;
      file.path = folder + "/" + record_store::segment_name(1, number);
      REQUIRE(db.open(file.path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) == SQLITE_OK);
      const int version = number <= old ? earlier : record_store::schema_version;
      const std::string id =
          "PRAGMA application_id = " + std::to_string(record_store::application_id);
      REQUIRE(db.run(id.c_str()) == SQLITE_OK);
      const std::string schema = "PRAGMA user_version = " + std::to_string(version);
      REQUIRE(db.run(schema.c_str()) == SQLITE_OK);
      REQUIRE(db.run(record_store::schema_sql(version).c_str()) == SQLITE_OK);
      const std::string insert =
          "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < " +
          std::to_string(rows) +
          ") INSERT INTO mcp_calls (timestamp, server_name, method, decision, outcome, seq, prev, "
          "hash" +
          std::string(version < 3 ? "" : ", claimed_name") +
          std::string(version < 4 ? "" : ", client_revision, server_revision") +
          ") SELECT 't', 's" + std::to_string(number) +
          "', 'tools/call', 'allowed', 'ok', i, x'00', x'ff'" + (version < 3 ? "" : ", 'me'") +
          (version < 4 ? "" : ", '2025-11-25', '2026-07-28'") + " FROM n";
      REQUIRE(db.run(insert.c_str()) == SQLITE_OK);
      all.push_back(std::move(file));
    }
  }
  ~Files() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
};

struct Asked {
  std::string rows, error;
  RecordReader::Answer answer;
};

Asked ask(const Files &files, std::string_view sql) {
  auto reader = RecordReader::open(files.all);
  REQUIRE(reader.has_value());
  Asked out;
  const auto answer = reader->run(sql, [&](const RecordReader::Answer &now, sqlite3_stmt *row) {
    for (std::size_t i = 0; i < now.columns.size(); ++i) {
      append_json_value(&out.rows, row, static_cast<int>(i));
      out.rows += ' ';
    }
  });
  if (answer) {
    out.answer = *answer;
  } else {
    out.error = answer.error().text;
  }
  return out;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("a query returns its columns and rows") {
  const Files files(1);
  const Asked asked =
      ask(files, "SELECT count(*) AS n, 1.5, 'a\"b', NULL, x'0a0b' FROM mcp_calls;");
  CHECK(asked.error == "");
  CHECK(asked.rows == R"(3 1.5 "a\"b" null "0a0b" )");
  CHECK(asked.answer.columns.at(0) == "n");
  CHECK(ask(files, "WITH x AS (SELECT 1) SELECT * FROM x").rows == "1 ");
  CHECK(ask(files, "EXPLAIN SELECT * FROM mcp_calls").error == "");
  CHECK(ask(files, "EXPLAIN QUERY PLAN SELECT * FROM mcp_calls").error == "");
  CHECK(ask(files, "SELECT name FROM sqlite_schema WHERE name = 'mcp_calls'").rows ==
        "\"mcp_calls\" ");
  CHECK(ask(files, "SELECT 9e999").rows == "null ");
}

TEST_CASE("several files are read as one database") {
  const Files files(3);
  CHECK(ask(files, "SELECT count(*), count(DISTINCT server_name) FROM mcp_calls").rows == "9 3 ");
  const Files many(13, 1);
  CHECK(ask(many, "SELECT count(*) FROM mcp_calls").rows == "11 ");
}

TEST_CASE(
    "files of an earlier schema are read together with newer files; a missing column is NULL") {
  constexpr std::string_view sql =
      "SELECT count(*), count(claimed_name), count(client_revision), max(server_revision), "
      "min(outcome), max(length(hash)) FROM mcp_calls";
  CHECK(ask(Files(1, 3, 1, 2), sql).rows == R"(3 0 0 null "ok" 1 )");
  CHECK(ask(Files(3, 2, 2, 2), sql).rows == R"(6 2 2 "2026-07-28" "ok" 1 )");
  CHECK(ask(Files(1, 3, 1, 3), sql).rows == R"(3 3 0 null "ok" 1 )");
  CHECK(ask(Files(3, 2, 2, 3), sql).rows == R"(6 6 2 "2026-07-28" "ok" 1 )");
  CHECK(ask(Files(2, 2, 1, 2), "SELECT count(*) FROM approvals WHERE claimed_name IS NULL").rows ==
        "0 ");
  CHECK(ask(Files(1, 1, 1, 2), "SELECT seq, claimed_name, server_revision, prev FROM mcp_calls")
            .rows == R"(1 null null "00" )");
  CHECK(ask(Files(1, 1, 1, 3), "SELECT seq, claimed_name, server_revision, prev FROM mcp_calls")
            .rows == R"(1 "me" null "00" )");
}

TEST_CASE("an incomplete file is skipped") {
  Files files(2);
  SegmentFile empty;
  empty.path = files.folder + "/" + record_store::segment_name(1, 3);
  std::ofstream(empty.path).close();
  files.all.insert(files.all.begin(), empty);
  CHECK(ask(files, "SELECT count(*) FROM mcp_calls").rows == "6 ");
}

TEST_CASE("unreadable files are reported and do not hide the others") {
  Files files(4);
  std::ofstream(files.all[1].path, std::ios::trunc) << std::string(4'096, 'x');
  {
    Database old;
    REQUIRE(old.open(files.all[2].path, SQLITE_OPEN_READWRITE) == SQLITE_OK);
    REQUIRE(old.run("DROP TABLE call_intents; PRAGMA user_version = 1") == SQLITE_OK);
  }
  files.all.push_back({files.folder + "/gone.db", 1, 9});
  CHECK(ask(files, "SELECT DISTINCT server_name FROM mcp_calls ORDER BY 1").rows ==
        R"("s1" "s4" )");
  const auto reader = RecordReader::open(files.all);
  REQUIRE(reader.has_value());
  CHECK(reader->usable_files() == 2);
  REQUIRE(reader->left_out().size() == 2);
  CHECK(has(reader->left_out()[0], files.all[1].path + ": file is not a database"));
  CHECK(has(reader->left_out()[1], files.all[2].path + ": has schema version 1"));
}

TEST_CASE("statements that do more than read are rejected") {
  const Files files(1);
  for (const char *sql : {"DELETE FROM mcp_calls",
                          "UPDATE mcp_calls SET method = 'x'",
                          "INSERT INTO fs_events DEFAULT VALUES",
                          "PRAGMA journal_mode = DELETE",
                          "PRAGMA page_count",
                          "ATTACH '/tmp/x.db' AS x",
                          "DETACH main",
                          "CREATE TABLE x (a)",
                          "CREATE TEMP TABLE x (a)",
                          "DROP TABLE mcp_calls",
                          "BEGIN",
                          "VACUUM INTO '/tmp/x.db'",
                          "REINDEX",
                          "ANALYZE",
                          "EXPLAIN DELETE FROM mcp_calls",
                          "WITH x AS (SELECT 1) DELETE FROM mcp_calls",
                          "SELECT load_extension('x')",
                          "SELECT * FROM pragma_database_list",
                          "/* SELECT */ COMMIT",
                          "SELECT 1; DELETE FROM mcp_calls"}) {
    const Asked asked = ask(files, sql);
    INFO(sql << ": " << asked.error);
    CHECK(asked.error != "");
  }
  CHECK(has(ask(files, "DELETE FROM mcp_calls").error, "DELETE is not allowed"));
  CHECK(has(ask(files, "PRAGMA page_count").error, "PRAGMA is not allowed"));
  CHECK(has(ask(files, "ATTACH 'x' AS y").error, "ATTACH is not allowed"));
  CHECK(has(ask(files, "SELECT 1; SELECT 2").error, "only one query is allowed"));
  CHECK(has(ask(files, "SELECT no_such FROM mcp_calls").error, "no such column"));
  CHECK(has(ask(files, "  -- nothing").error, "the query is empty"));
  CHECK(ask(files, "SELECT count(*) FROM mcp_calls").rows == "3 ");
}

TEST_CASE("results are limited in rows, time and size") {
  const Files files(1, 20'000);
  const Asked many = ask(files, "SELECT id FROM mcp_calls");
  CHECK(many.answer.rows == RecordReader::max_rows);
  CHECK(many.answer.cut);
  CHECK_FALSE(ask(files, "SELECT id FROM mcp_calls LIMIT 10000").answer.cut);
  const Asked endless = ask(
      files,
      "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n");
  CHECK(has(endless.error, "timed out after 5 s"));
  CHECK(has(ask(files, "SELECT hex(zeroblob(1000000000))").error, "too big"));
}

TEST_CASE("a file that is not a session database is rejected") {
  Files files(1);
  Database db;
  REQUIRE(db.open(files.folder + "/other.db", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) ==
          SQLITE_OK);
  REQUIRE(db.run("CREATE TABLE x (a)") == SQLITE_OK);
  SegmentFile other;
  other.path = files.folder + "/other.db";
  const auto opened = RecordReader::open({other});
  REQUIRE_FALSE(opened.has_value());
  CHECK(has(opened.error().text, "is not a session database file"));
  CHECK_FALSE(RecordReader::open({}).has_value());
}
