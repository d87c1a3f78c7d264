#include <bulkhead/cpp/text.hpp>

#include <catch2/catch.hpp>

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "record-store/schema.hpp"
#include "record-store/verify.hpp"

using namespace record_store;

namespace {

struct Folder {
  std::string path;
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "record-store-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

int count_of(const Database &db, const std::string &sql) {
  Statement rows;
  REQUIRE(rows.prepare(db.get(), sql) == SQLITE_OK);
  REQUIRE(rows.step() == SQLITE_ROW);
  return static_cast<int>(rows.integer(0));
}

// Creates a file that continues the chain from *head. The file has `calls` rows in mcp_calls, and a
// mark after every third row.
void make_file(const Folder &folder, std::uint32_t number, int calls, Head *head,
               int schema = schema_version) {
  Database db;
  const std::string path = folder.path + "/" + segment_name(1, number);
  REQUIRE(db.open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) == SQLITE_OK);
  REQUIRE(db.run(schema_sql(schema).c_str()) == SQLITE_OK);
  const std::string version = "PRAGMA user_version = " + std::to_string(schema);
  REQUIRE(db.run(version.c_str()) == SQLITE_OK);
  REQUIRE(db.run("BEGIN") == SQLITE_OK);
  {
    Statement segment;
    REQUIRE(segment.prepare(db.get(), "INSERT INTO audit_segment VALUES (1,?,'t','p',?,?,?)") ==
            SQLITE_OK);
    segment.bind(1, std::int64_t{number});
    segment.bind(2, static_cast<std::int64_t>(head->seq));
    sqlite3_bind_blob(segment.get(), 3, head->hash.data(), 32, SQLITE_STATIC);
    segment.bind(4, head->call_id);
    REQUIRE(segment.step() == SQLITE_DONE);
  }
  Head fresh;
  REQUIRE(read_head(db.get(), &fresh) == SQLITE_OK);
  CHECK(fresh.seq == head->seq);
  ChainedInsert call, mark;
  REQUIRE(call.prepare(db.get(), "mcp_calls",
                       "id, timestamp, server_name, method, tool_name, request_id, "
                       "request_preview, response_preview, decision, duration_ms, error_message, "
                       "process_name, bytes_sent, bytes_received, policy_mode, policy_action, "
                       "policy_rule, policy_reason, trace_id, target, outcome, transport, peer, "
                       "principal, session, duration_us, flags, record_number, intent" +
                           std::string(schema < 3 ? "" : ", claimed_name") +
                           std::string(schema < 4 ? "" : ", client_revision, server_revision")) ==
          SQLITE_OK);
  REQUIRE(mark.prepare(db.get(), "audit_marks", "id, timestamp, kind, detail") == SQLITE_OK);
  for (int i = 0; i < calls; ++i) {
    call.begin();
    call.integer(++head->call_id);
    for (const char *text :
         {"2026-01-01T00:00:00.000Z", "s", "tools/call", "t", "1", "{}", "{}", "allowed"}) {
      call.text(text);
    }
    call.integer(i);
    call.null();
    call.text(std::string_view("a\0b", 3));
    call.integer(2);
    call.integer(3);
    for (int rest = 0; rest < 6; ++rest) call.null();
    call.text("ok");
    for (int rest = 0; rest < 4; ++rest) call.null();
    call.integer(7);
    call.integer(0);
    call.integer(1000 + i);
    call.null();
    if (schema >= 3) call.text("Claude Code");
    if (schema >= 4) {
      call.text("2025-11-25");
      call.text("2026-07-28");
    }
    REQUIRE(call.finish(head) == SQLITE_DONE);
    if (i % 3 != 2) continue;
    mark.begin();
    mark.integer(static_cast<std::int64_t>(head->seq + 1));
    mark.text("2026-01-01T00:00:00.000Z");
    mark.text(i == 2 ? "gap" : "start");
    mark.text("some detail");
    REQUIRE(mark.finish(head) == SQLITE_DONE);
  }
  REQUIRE(db.run("COMMIT") == SQLITE_OK);
  REQUIRE(read_head(db.get(), &fresh) == SQLITE_OK);
  CHECK(fresh.seq == head->seq);
  CHECK(fresh.hash == head->hash);
  CHECK(fresh.call_id == head->call_id);
}

// Modifies a file as an attacker with write access could.
void tamper(const Folder &folder, std::uint32_t number, const std::string &sql) {
  Database db;
  REQUIRE(db.open(folder.path + "/" + segment_name(1, number), SQLITE_OPEN_READWRITE) == SQLITE_OK);
  for (const std::string_view table : chained_tables) {
    const std::string name(table);
    REQUIRE(db.run(("DROP TRIGGER " + name + "_no_update; DROP TRIGGER " + name + "_no_delete")
                       .c_str()) == SQLITE_OK);
  }
  INFO(sql);
  REQUIRE(db.run(sql.c_str()) == SQLITE_OK);
}

VerifyReport verify(const Folder &folder, const VerifyOptions &options = {}) {
  return verify_chain(segment_files(folder.path), options);
}

bool has(const std::string &text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("file names are created and parsed") {
  std::uint32_t chain = 0, number = 0;
  CHECK(segment_name(1, 2) == "calls-1-000002.db");
  REQUIRE(parse_segment_name("calls-12-000345.db", &chain, &number));
  CHECK(chain == 12);
  CHECK(number == 345);
  for (const char *bad : {"calls-1-000001.db-wal", "calls-1.db", "calls--1.db", "calls-1-.db", "x",
                          "calls-1-2.dbx", "calls-99999999999-1.db"}) {
    CHECK_FALSE(parse_segment_name(bad, &chain, &number));
  }
}

TEST_CASE("the schema has all tables, and mcp_calls has 19 columns in order") {
  Database db;
  REQUIRE(db.open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) == SQLITE_OK);
  REQUIRE(db.run(std::string(schema_sql()).c_str()) == SQLITE_OK);
  Statement columns;
  REQUIRE(columns.prepare(db.get(),
                          "SELECT group_concat(name) FROM (SELECT name FROM "
                          "pragma_table_info('mcp_calls') ORDER BY cid LIMIT 19)") == SQLITE_OK);
  REQUIRE(columns.step() == SQLITE_ROW);
  CHECK(columns.text(0) ==
        "id,timestamp,server_name,method,tool_name,request_id,request_preview,response_preview,"
        "decision,duration_ms,error_message,process_name,bytes_sent,bytes_received,policy_mode,"
        "policy_action,policy_rule,policy_reason,trace_id");
  for (const std::string_view table : chained_tables) {
    const std::string info = "pragma_table_info('" + std::string(table) + "')";
    CHECK(count_of(db, "SELECT count(*) FROM (SELECT name FROM " + info +
                           " ORDER BY cid DESC LIMIT 3) WHERE name IN ('seq','prev','hash')") == 3);
    CHECK(count_of(db, "SELECT count(*) FROM " + info + " WHERE cid = 0 AND name = 'id'") == 1);
  }
}

TEST_CASE("recorded rows cannot be changed or deleted") {
  Folder folder;
  Head head;
  make_file(folder, 1, 3, &head);
  Database db;
  REQUIRE(db.open(folder.path + "/" + segment_name(1, 1), SQLITE_OPEN_READWRITE) == SQLITE_OK);
  CHECK(db.run("UPDATE mcp_calls SET server_name = 'x'") == SQLITE_CONSTRAINT_TRIGGER);
  CHECK(has(db.message(), "not changed"));
  CHECK(db.run("DELETE FROM mcp_calls") == SQLITE_CONSTRAINT_TRIGGER);
  CHECK(db.run("DELETE FROM audit_marks WHERE id = 1 OR 1") == SQLITE_CONSTRAINT_TRIGGER);
}

TEST_CASE("a chain of several files is verified, and gaps are reported") {
  Folder folder;
  Head head;
  for (std::uint32_t number = 1; number <= 3; ++number) make_file(folder, number, 10, &head);
  const VerifyReport report = verify(folder);
  CHECK(report.broken.empty());
  CHECK(report.files == 3);
  CHECK(report.rows == 39);
  CHECK(report.unsigned_rows == 39);
  CHECK(report.first_seq == 1);
  REQUIRE(report.notes.size() == 3);
  CHECK(has(report.notes[0], "gap: some detail"));
}

TEST_CASE("files of an earlier schema are verified, even in a chain with newer files") {
  Folder folder;
  Head head;
  const int earlier = GENERATE(2, 3);
  make_file(folder, 1, 10, &head, earlier);
  make_file(folder, 2, 10, &head);
  const auto run = [&](std::uint32_t number, const std::string &sql) {
    Database db;
    REQUIRE(db.open(folder.path + "/" + segment_name(1, number), SQLITE_OPEN_READWRITE) ==
            SQLITE_OK);
    REQUIRE(db.run(sql.c_str()) == SQLITE_OK);
  };
  const VerifyReport report = verify(folder);
  CHECK(report.broken.empty());
  CHECK(report.files == 2);
  CHECK(report.rows == 26);
  CHECK(schema_sql(2).find("claimed_name TEXT") == std::string::npos);
  CHECK(schema_sql(3).find("claimed_name TEXT") != std::string::npos);
  CHECK(schema_sql(3).find("_revision TEXT") == std::string::npos);
  CHECK(schema_sql(1).empty());
  CHECK(schema_sql(schema_version + 1).empty());
  SECTION("a changed row of the earlier file") {
    tamper(folder, 1, "UPDATE mcp_calls SET server_name = 'x' WHERE id = 5");
    CHECK(has(verify(folder).broken, "calls-1-000001.db: mcp_calls id 5 (seq 6) was changed"));
  }
  SECTION("a changed name in the newer file") {
    const std::string column = GENERATE("claimed_name", "client_revision", "server_revision");
    tamper(folder, 2, "UPDATE mcp_calls SET " + column + " = 'x' WHERE id = 15");
    CHECK(has(verify(folder).broken, "calls-1-000002.db: mcp_calls id 15 (seq 19) was changed"));
  }
  SECTION("the column added to the earlier file") {
    run(1, earlier == 2 ? "ALTER TABLE mcp_calls ADD COLUMN claimed_name TEXT"
                        : "ALTER TABLE mcp_calls ADD COLUMN client_revision TEXT");
    CHECK(has(verify(folder).broken, "table mcp_calls of the schema was changed"));
  }
  SECTION("another version number") {
    run(1, "PRAGMA user_version = " + std::to_string(schema_version));
    CHECK(has(verify(folder).broken, "of the schema was changed"));
  }
}

TEST_CASE("the first tampered row is reported") {
  Folder folder;
  Head head;
  make_file(folder, 1, 10, &head);
  make_file(folder, 2, 10, &head);
  const auto broken = [&] { return verify(folder).broken; };
  SECTION("changed") {
    tamper(folder, 1, "UPDATE mcp_calls SET server_name = 'x' WHERE id = 5");
    CHECK(has(broken(), "calls-1-000001.db: mcp_calls id 5 (seq 6) was changed"));
  }
  SECTION("changed in type only") {
    tamper(folder, 1, "UPDATE mcp_calls SET request_id = CAST('1' AS BLOB) WHERE id = 5");
    CHECK(has(broken(), "mcp_calls id 5 (seq 6) was changed"));
  }
  SECTION("a column moved") {
    tamper(folder, 1,
           "UPDATE mcp_calls SET policy_rule = error_message, policy_reason = tool_name,"
           "tool_name = NULL WHERE id = 2");
    CHECK(has(broken(), "mcp_calls id 2 (seq 2) was changed"));
  }
  SECTION("deleted") {
    tamper(folder, 1, "DELETE FROM mcp_calls WHERE id = 5");
    CHECK(has(broken(), "row seq 6 is missing: the next row is mcp_calls id 6 (seq 7)"));
  }
  SECTION("deleted and renumbered") {
    tamper(folder, 1,
           "DELETE FROM mcp_calls WHERE id = 5; UPDATE mcp_calls SET seq = 6 WHERE id = 6");
    CHECK(has(broken(), "mcp_calls id 6 (seq 6)"));
  }
  SECTION("a mark deleted") {
    tamper(folder, 1, "DELETE FROM audit_marks WHERE seq = 4");
    CHECK(has(broken(), "row seq 4 is missing"));
  }
  SECTION("added") {
    tamper(folder, 1,
           "INSERT INTO audit_marks SELECT 900, timestamp, 'x', '', seq, prev, hash "
           "FROM audit_marks LIMIT 1");
    CHECK(has(broken(), "(seq 4) has a duplicate seq"));
  }
  SECTION("the last rows of a file with successors") {
    tamper(folder, 1, "DELETE FROM mcp_calls WHERE id = 10");
    CHECK(has(broken(), "calls-1-000002.db: does not continue the preceding file"));
  }
  SECTION("a file is missing") {
    make_file(folder, 3, 1, &head);
    std::filesystem::remove(folder.path + "/" + segment_name(1, 2));
    CHECK(has(broken(), "the preceding file, number 2, is missing"));
  }
  SECTION("a file was renamed") {
    std::filesystem::rename(folder.path + "/" + segment_name(1, 2),
                            folder.path + "/" + segment_name(1, 3));
    CHECK(has(broken(), "was renamed: it is number 2 of chain 1"));
  }
  SECTION("not a database") {
    std::filesystem::resize_file(folder.path + "/" + segment_name(1, 1), 5000);
    CHECK(has(broken(), "calls-1-000001.db: "));
  }
}

TEST_CASE("the oldest files may be missing if a mark records their removal") {
  Folder folder;
  Head head, first;
  make_file(folder, 1, 10, &head);
  first = head;
  make_file(folder, 2, 10, &head);
  const auto mark = [&](const std::string &detail) {
    Database db;
    REQUIRE(db.open(folder.path + "/" + segment_name(1, 2), SQLITE_OPEN_READWRITE) == SQLITE_OK);
    ChainedInsert insert;
    REQUIRE(insert.prepare(db.get(), "audit_marks", "id, timestamp, kind, detail") == SQLITE_OK);
    insert.begin();
    insert.integer(static_cast<std::int64_t>(head.seq + 1));
    insert.text("t");
    insert.text("dropped");
    insert.text(detail);
    REQUIRE(insert.finish(&head) == SQLITE_DONE);
  };
  std::filesystem::remove(folder.path + "/" + segment_name(1, 1));
  SECTION("no mark") {
    CHECK(has(verify(folder).broken, "calls-1-000001.db: is missing"));
    VerifyOptions one;
    one.whole_chain = false;
    CHECK(verify(folder, one).broken.empty());
  }
  SECTION("a mark for another file or row") {
    Head other = first;
    other.hash[0] ^= 1;
    mark("calls-1-000001.db by max_bytes" + dropped_text(other));
    mark("calls-2-000001.db by max_bytes" + dropped_text(first));
    CHECK(has(verify(folder).broken, "calls-1-000001.db: is missing"));
  }
  SECTION("a valid mark") {
    mark("calls-1-000001.db by max_bytes" + dropped_text(first));
    const VerifyReport report = verify(folder);
    CHECK(report.broken.empty());
    CHECK(report.first_seq == 14);
    CHECK(has(report.notes.at(0), "the rows before seq 14 are missing"));
  }
}

TEST_CASE("changes to the schema are detected") {
  Folder folder;
  Head head;
  make_file(folder, 1, 10, &head);
  const auto run = [&](const std::string &sql) {
    Database db;
    REQUIRE(db.open(folder.path + "/" + segment_name(1, 1), SQLITE_OPEN_READWRITE) == SQLITE_OK);
    INFO(sql);
    REQUIRE(db.run(sql.c_str()) == SQLITE_OK);
  };
  const auto broken = [&] { return verify(folder).broken; };
  REQUIRE(broken().empty());
  SECTION("swapped column names") {
    run("ALTER TABLE mcp_calls RENAME COLUMN decision TO x;"
        "ALTER TABLE mcp_calls RENAME COLUMN outcome TO decision;"
        "ALTER TABLE mcp_calls RENAME COLUMN x TO outcome");
    CHECK(has(broken(), "table mcp_calls of the schema was changed"));
  }
  SECTION("a view instead of a table") {
    run("DROP TABLE session_identity; CREATE VIEW session_identity AS SELECT 1 AS vm_id");
    CHECK(has(broken(), "table session_identity of the schema is missing"));
  }
  SECTION("a trigger that hides new rows") {
    run("CREATE TRIGGER t BEFORE INSERT ON mcp_calls BEGIN SELECT RAISE(IGNORE); END");
    CHECK(has(broken(), "trigger t is not part of the schema"));
  }
  SECTION("a trigger is missing") {
    run("DROP TRIGGER mcp_calls_no_delete");
    CHECK(has(broken(), "trigger mcp_calls_no_delete of the schema is missing"));
  }
  SECTION("an incomplete index") {
    run("DROP INDEX mcp_calls_server_name;"
        "CREATE INDEX mcp_calls_server_name ON mcp_calls(server_name) WHERE id < 5;"
        "PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET sql = 'CREATE INDEX mcp_calls_server_name ON "
        "mcp_calls(server_name)' WHERE name = 'mcp_calls_server_name'");
    CHECK(has(broken(), "its pages are damaged"));
  }
  SECTION("a file of another schema version") {
    run("DROP INDEX mcp_calls_server_name; PRAGMA user_version = 1");
    CHECK(
        has(broken(), "cannot be verified: it has schema version 1, which this program does not"));
    CHECK_FALSE(has(broken(), "changed"));
    CHECK_FALSE(has(broken(), "missing"));
  }
  SECTION("statistics are ignored") {
    run("ANALYZE");
    CHECK(broken().empty());
  }
}

TEST_CASE("a checkpoint for the row before the file is valid, unless signed by another instance") {
  Folder folder;
  Head head;
  make_file(folder, 1, 10, &head);
  const Head first = head;
  make_file(folder, 2, 10, &head);
  const auto checkpoint = [&](std::uint32_t number, const Head &of, std::string_view instance) {
    Database db;
    REQUIRE(db.open(folder.path + "/" + segment_name(1, number), SQLITE_OPEN_READWRITE) ==
            SQLITE_OK);
    Statement insert;
    REQUIRE(insert.prepare(db.get(),
                           "INSERT INTO audit_checkpoints (timestamp, seq, head, statement, "
                           "instance, signed_at, public_key, signature) VALUES "
                           "('t',?,?,?,?,5,x'00',x'00')") == SQLITE_OK);
    const std::string statement = checkpoint_statement(1, of);
    insert.bind(1, static_cast<std::int64_t>(of.seq));
    sqlite3_bind_blob(insert.get(), 2, of.hash.data(), 32, SQLITE_STATIC);
    insert.bind(3, statement);
    insert.bind(4, instance);
    REQUIRE(insert.step() == SQLITE_DONE);
  };
  checkpoint(2, first, "book");
  CHECK(verify(folder).broken.empty());
  CHECK(verify(folder).checkpoints == 1);
  CHECK(verify(folder).unsigned_rows == 13);
  SECTION("of the expected instance") {
    VerifyOptions options;
    options.instance = "other";
    CHECK(has(verify(folder, options).broken, "is for the instance \"book\", not for \"other\""));
  }
  SECTION("of different instances") {
    checkpoint(2, head, "other");
    CHECK(has(verify(folder).broken, "is for the instance \"other\""));
  }
  SECTION("of an earlier row") {
    Head far = first;
    far.seq -= 1;
    checkpoint(2, far, "book");
    CHECK(has(verify(folder).broken, "is for a row before this file"));
  }
}

TEST_CASE("an interrupted creation is reported, even before the WAL exists") {
  Folder folder;
  Head head;
  make_file(folder, 1, 10, &head);
  const std::string made = folder.path + "/made", last = folder.path + "/" + segment_name(1, 2);
  {
    Database db;
    REQUIRE(db.open(made, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) == SQLITE_OK);
    REQUIRE(db.run("CREATE TABLE a (b); BEGIN; CREATE TABLE c (d)") == SQLITE_OK);
    REQUIRE(sqlite3_db_cacheflush(db.get()) == SQLITE_OK);
    // Copying the files at this point simulates a crash.
    std::filesystem::copy_file(made, last);
    std::filesystem::copy_file(made + "-journal", last + "-journal");
  }
  const VerifyReport report = verify(folder);
  CHECK(report.broken.empty());
  CHECK(has(report.notes.at(report.notes.size() - 1), "is empty: its creation was interrupted"));
  // Only the last file may be incomplete.
  std::filesystem::copy_file(last, folder.path + "/" + segment_name(1, 3));
  CHECK(has(verify(folder).broken, "calls-1-000002.db: cannot be read"));
}

TEST_CASE("an interrupted creation is valid unless signed rows are missing") {
  Folder folder;
  Head head;
  make_file(folder, 1, 10, &head);
  std::ofstream(folder.path + "/" + segment_name(1, 2)).close();
  const VerifyReport report = verify(folder);
  CHECK(report.broken.empty());
  CHECK(has(report.notes.at(report.notes.size() - 1), "is empty: its creation was interrupted"));
  VerifyOptions options;
  options.known = {{head.seq + 1, std::string(64, '0'), 1}};
  CHECK(has(verify(folder, options).broken, "is missing"));
  std::filesystem::rename(folder.path + "/" + segment_name(1, 1),
                          folder.path + "/" + segment_name(1, 3));
  CHECK(has(verify(folder).broken, "is not a session database file"));
}

TEST_CASE("signed rows must exist and be unchanged") {
  Folder folder;
  Head head;
  make_file(folder, 1, 10, &head);
  VerifyOptions options;
  options.known = {{head.seq, bh::hex(bytes_of(head.hash)), 1}};
  CHECK(verify(folder, options).broken.empty());
  SECTION("rows were removed at the end") {
    options.known.push_back({head.seq + 5, std::string(64, '0'), 2});
    CHECK(has(verify(folder, options).broken,
              "row seq 14 is missing: the supervisor has signed the rows up to seq 18"));
  }
  SECTION("rewritten") {
    options.known[0].head = std::string(64, '0');
    CHECK(has(verify(folder, options).broken, "row seq 13 does not match the supervisor's"));
  }
}

TEST_CASE("different rows have different hashes") {
  const auto of = [](const std::function<void(RowHash &)> &fill, std::string_view table = "t") {
    RowHash hash;
    hash.begin(table);
    fill(hash);
    return hash.finish();
  };
  const auto a = of([](RowHash &h) { h.text("ab"), h.text("c"); });
  CHECK(a == of([](RowHash &h) { h.text("ab"), h.text("c"); }));
  CHECK(a != of([](RowHash &h) { h.text("a"), h.text("bc"); }));
  CHECK(a != of([](RowHash &h) { h.text("ab"), h.text("c"); }, "u"));
  CHECK(a != of([](RowHash &h) { h.text("ab"), h.blob("c"); }));
  CHECK(of([](RowHash &h) { h.integer(1); }) != of([](RowHash &h) { h.integer(-1); }));
  CHECK(of([](RowHash &h) { h.null(); }) != of([](RowHash &h) { h.text(""); }));
  CHECK(of([](RowHash &h) { h.real(1); }) != of([](RowHash &h) { h.integer(1); }));
}
