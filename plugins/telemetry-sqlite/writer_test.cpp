#include <catch2/catch.hpp>

#include <bulkhead/abi/ext/telemetry.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "telemetry-sqlite/testing.hpp"
#include "telemetry-sqlite/writer.hpp"

using namespace telemetry_sqlite;
using namespace telemetry_sqlite::testing;

namespace {

struct World {
  Folder folder;
  Signer signer;
  Config config;
  std::vector<std::string> logged;
  std::unique_ptr<Writer> writer;

  World() {
    config.flush_ms = 10;
    config.spill_bytes = 256u << 10;
  }
  void start() {
    writer = std::make_unique<Writer>(
        config, "book", [this](std::int32_t, const std::string &text) { logged.push_back(text); },
        signer.function());
    REQUIRE(writer->start(folder.path) == "");
  }
  void stop() { writer.reset(); }
  void put(std::uint64_t first, std::uint64_t n) {
    for (std::uint64_t i = first; i < first + n; ++i) {
      while (!writer->put(row(i))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // Adds rows slowly. Otherwise, the rows added before a failure is detected would not all fit into
  // the queue.
  void put_slowly(std::uint64_t number) {
    put(number, 1);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  template <class F>
  bool until(F done) {
    for (int i = 0; i < 10'000 && !done(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return done();
  }
  std::string file(std::uint32_t number = 1) {
    return folder / record_store::segment_name(1, number);
  }
  // Returns the size of the largest file. If a test passes a greater limit to FullDisk, some rows
  // can still be written.
  std::uint64_t bytes() {
    std::uint64_t most = 0;
    for (const auto &one : std::filesystem::directory_iterator(folder.path)) {
      most = std::max<std::uint64_t>(most, one.is_regular_file() ? one.file_size() : 0);
    }
    return most;
  }
  std::string calls() { return one(file(), "SELECT count(*) FROM mcp_calls"); }
  std::string kinds() {
    return one(file(), "SELECT group_concat(kind) FROM (SELECT kind FROM audit_marks ORDER BY id)");
  }
  record_store::VerifyReport check() { return verify(folder, &signer); }
};

// Simulates a full disk by limiting the size of files that this process can write.
struct FullDisk {
  rlimit before{};
  explicit FullDisk(std::uint64_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit now{bytes, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before); }
};

}  // namespace

TEST_CASE("rows are written once, chained and signed at the end") {
  World w;
  w.start();
  w.put(1000, 3000);
  w.stop();
  CHECK(w.calls() == "3000");
  CHECK(w.kinds() == "start,end");
  const auto report = w.check();
  CHECK(report.broken == "");
  CHECK(report.rows == 3002);
  CHECK(report.unsigned_rows == 0);
  CHECK(report.checkpoints >= 1);
  CHECK(report.notes.empty());
  CHECK(w.logged.empty());
  const std::string of = " FROM mcp_calls WHERE id = 7";
  CHECK(one(w.file(), "SELECT server_name || method || tool_name || decision || outcome" + of) ==
        "localtools/calltoolallowedok");
  CHECK(one(w.file(),
            "SELECT duration_ms || '/' || duration_us || '/' || bytes_sent || '/' || "
            "bytes_received" +
                of) == "2/1500/45/14");
  CHECK(one(w.file(), "SELECT timestamp" + of).size() == 24);
  CHECK(one(w.file(), "SELECT policy_mode || coalesce(policy_action, '-')" + of) == "audit_only-");
}

TEST_CASE("the files have private permissions") {
  World w;
  w.start();
  w.put(1, 1);
  REQUIRE(w.until([&] { return w.writer->counters().written == 1; }));
  for (const char *end : {"", "-wal", "-shm"}) {
    INFO(end);
    CHECK(std::filesystem::status(w.file() + end).permissions() ==
          (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  }
}

TEST_CASE("the next process continues the chain") {
  World w;
  w.start();
  w.put(1, 10);
  w.stop();
  w.start();
  w.put(100, 10);
  w.stop();
  CHECK(w.calls() == "20");
  CHECK(w.kinds() == "start,end,start,end");
  CHECK(one(w.file(), "SELECT max(id) FROM mcp_calls") == "20");
  CHECK(w.check().broken == "");
}

TEST_CASE("repeated records are not written again") {
  World w;
  w.start();
  w.put(1, 10);
  w.stop();
  w.start();
  w.put(6, 10);
  // The clock was set back, so a record with the same number but a different time is a different
  // record.
  Row other = row(3);
  other.start_unix_ns += 1'000'000'000;
  REQUIRE(w.writer->put(std::move(other)));
  w.stop();
  CHECK(w.calls() == "16");
}

TEST_CASE("a missing number is recorded as a gap") {
  World w;
  w.start();
  w.put(1, 5);
  w.put(9, 5);
  w.stop();
  CHECK(w.kinds() == "start,gap,end");
  CHECK(one(w.file(), "SELECT detail FROM audit_marks WHERE kind = 'gap'")
            .starts_with("records 6 to 8 are missing"));
  CHECK(w.check().notes.size() == 1);
}

TEST_CASE(
    "decreasing record numbers are recorded as a gap, and counting continues from the new number") {
  World w;
  w.start();
  w.put(2'000'000'000, 5);
  w.put(1'000'000'000, 5);
  w.put(1'000'000'505, 5);
  w.stop();
  CHECK(w.kinds() == "start,gap,gap,end");
  CHECK(one(w.file(), "SELECT detail FROM audit_marks WHERE kind = 'gap' ORDER BY id")
            .find("its clock was set back: record numbers continue at 1000000000 ") !=
        std::string::npos);
  CHECK(one(w.file(), "SELECT detail FROM audit_marks WHERE kind = 'gap' ORDER BY id DESC")
            .starts_with("records 1000000005 to 1000000504 are missing"));
  // Rows that are sent again do not cause a gap.
  w.start();
  w.put(2'000'000'005, 1);
  w.put(1'000'000'000, 5);
  w.put(2'000'000'006, 1);
  w.stop();
  CHECK(w.kinds() == "start,gap,gap,end,start,end");
  CHECK(w.calls() == "17");
}

TEST_CASE("large records do not wait for flush_ms") {
  World w;
  w.config.flush_ms = 600'000;
  w.start();
  for (std::uint64_t number = 1; number <= 40; ++number) {
    Row large = row(number);
    large.response = std::string(1u << 20, 'r');
    REQUIRE(w.writer->put(std::move(large)));
  }
  CHECK(w.until([&] { return w.writer->counters().written >= 32; }));
  w.stop();
  CHECK(w.calls() == "40");
}

TEST_CASE("if no file is open, no checkpoint is signed") {
  World w;
  Store store(w.folder.path, 1, "book", w.config, [](std::int32_t, const std::string &) {});
  REQUIRE(store.open() == "");
  REQUIRE(store.begin());
  REQUIRE(store.mark("start", ""));
  REQUIRE(store.commit());
  store.close();
  CHECK(!store.checkpoint(w.signer.function()));
  CHECK(w.signer.asked == 0);
  REQUIRE(store.open() == "");
  CHECK(store.checkpoint(w.signer.function()));
}

TEST_CASE("an unused next file does not affect the detection of a crash") {
  World w;
  w.start();
  w.put(1, 5);
  w.stop();
  SECTION("the previous process shut down cleanly") {
    std::ofstream(w.file(2)).close();
    w.start();
    w.stop();
    CHECK(one(w.file(2), "SELECT group_concat(kind) FROM audit_marks") == "start,end");
  }
  SECTION("the previous process crashed") {
    record_store::Database db;
    REQUIRE(db.open(w.file(), SQLITE_OPEN_READWRITE) == SQLITE_OK);
    REQUIRE(db.run("DROP TRIGGER audit_marks_no_delete; "
                   "DELETE FROM audit_marks WHERE kind = 'end'") == SQLITE_OK);
    db.close();
    std::ofstream(w.file(2)).close();
    w.start();
    w.stop();
    CHECK(one(w.file(2), "SELECT group_concat(kind) FROM audit_marks") == "unclean,start,end");
  }
}

TEST_CASE("a row contains the policy, lists are recorded, and credentials are masked") {
  World w;
  w.start();
  Row blocked = row(1);
  blocked.outcome = 3;
  blocked.action = 3;
  blocked.rule = "r1";
  blocked.reason = "because";
  REQUIRE(w.writer->put(std::move(blocked)));
  Row list = row(2);
  list.method = "tools/list";
  list.server = list.name = "";
  REQUIRE(w.writer->put(std::move(list)));
  Row secret = row(3);
  secret.request = R"({"arguments":{"password":"hunter2"}})";
  secret.error = "got Bearer hunter2hunter2";
  REQUIRE(w.writer->put(std::move(secret)));
  w.stop();
  CHECK(one(w.file(),
            "SELECT decision || policy_mode || policy_action || policy_rule || "
            "policy_reason FROM mcp_calls WHERE id = 1") == "deniedenforceblockr1because");
  CHECK(one(w.file(),
            "SELECT server_name || coalesce(tool_name, '-') FROM mcp_calls WHERE id = 2") == "*-");
  CHECK(one(w.file(), "SELECT request_preview || error_message FROM mcp_calls WHERE id = 3") ==
        R"({"arguments":{"password":"***"}}got Bearer ***)");
  CHECK(w.writer == nullptr);
}

TEST_CASE("a JSON error and truncated texts are masked") {
  World w;
  w.start();
  Row json = row(1);
  json.error = R"({"code":1,"data":{"password":"hunter2"}})";
  REQUIRE(w.writer->put(std::move(json)));
  Row cut = row(2);
  cut.flags = BH_RECORD_RESPONSE_CUT;
  cut.response = R"({"text":"it is ghp_hunter)";
  cut.error = std::string(1'010, ' ') + "ghp_hunter2xyz";
  REQUIRE(w.writer->put(std::move(cut)));
  w.stop();
  CHECK(one(w.file(), "SELECT error_message FROM mcp_calls WHERE id = 1") ==
        R"({"code":1,"data":{"password":"***"}})");
  CHECK(one(w.file(), "SELECT response_preview || error_message FROM mcp_calls WHERE id = 2")
            .find("hunter") == std::string::npos);
}

TEST_CASE("two gateways that share a folder write two chains") {
  World w;
  w.start();
  Writer other(w.config, "book", [](std::int32_t, const std::string &) {}, w.signer.function());
  REQUIRE(other.start(w.folder.path) == "");
  w.put(1, 5);
  REQUIRE(other.put(row(1)));
  other.stop();
  w.stop();
  const auto files = record_store::segment_files(w.folder.path);
  REQUIRE(files.size() == 2);
  CHECK(files[1].chain == 2);
  for (const auto &file : files) {
    record_store::VerifyOptions options;
    CHECK(record_store::verify_chain({file}, options).broken == "");
  }
}

TEST_CASE("full files are followed by new files, and the oldest files are removed") {
  World w;
  w.config.segment_bytes = 1u << 20;
  w.config.max_bytes = 4u << 20;
  w.config.checkpoint_rows = 200;
  w.start();
  std::uint64_t number = 1;
  const auto last = [&] { return record_store::segment_files(w.folder.path).back().number; };
  for (int i = 0; i < 400 && last() < 8; ++i) {
    for (int k = 0; k < 20; ++k) {
      Row large = row(number++);
      large.response = std::string(20'000, 'r');
      while (!w.writer->put(std::move(large))) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    const std::uint64_t so_far = number - 1;
    REQUIRE(w.until([&] { return w.writer->counters().written == so_far; }));
  }
  w.stop();
  const auto files = record_store::segment_files(w.folder.path);
  REQUIRE(files.back().number >= 8);
  CHECK(files.front().number > 1);
  std::uint64_t bytes = 0;
  for (const auto &file : files) bytes += file.bytes;
  CHECK(bytes <= (4u << 20) + (2u << 20));
  const auto report = w.check();
  CHECK(report.broken == "");
  CHECK(report.first_seq > 1);
  bool told = false;
  for (const std::string &note : report.notes) {
    told = told || note.find("dropped: calls-1-00000") != std::string::npos;
  }
  CHECK(told);
}

TEST_CASE("without signatures, recording continues with a warning") {
  World w;
  w.signer.answers = false;
  w.config.checkpoint_rows = 10;
  w.start();
  w.put(1, 100);
  w.stop();
  CHECK(w.calls() == "100");
  const auto report = w.check();
  CHECK(report.broken == "");
  CHECK(report.unsigned_rows == 102);
  w.signer.answers = true;
  w.start();
  w.stop();
  CHECK(w.check().unsigned_rows == 0);
}

TEST_CASE("a signature with another key or for other rows is reported") {
  World w;
  w.start();
  w.put(1, 10);
  w.stop();
  Signer other;
  CHECK(verify(w.folder, &other).broken.find("has no valid signature of this key") !=
        std::string::npos);
  record_store::Database db;
  REQUIRE(db.open(w.file(), SQLITE_OPEN_READWRITE) == SQLITE_OK);
  REQUIRE(db.run("UPDATE audit_checkpoints SET head = zeroblob(32)") == SQLITE_OK);
  CHECK(w.check().broken.find("does not match the row") != std::string::npos);
}

TEST_CASE("rows that cannot be written go to the spill file and are replayed") {
  World w;
  w.start();
  w.put(1, 100);
  REQUIRE(w.until([&] { return w.writer->counters().written == 100; }));
  {
    FullDisk full(w.bytes() + (400u << 10));
    std::uint64_t number = 101;
    while (w.writer->counters().write_errors == 0 || w.writer->counters().spilled == 0) {
      w.put_slowly(number++);
    }
    CHECK(w.writer->counters().written > 100);  // the disk is full by now
    CHECK(w.writer->counters().lost == 0);
    w.put(number, 100);
    w.stop();
  }
  CHECK(w.logged.at(0).find("cannot be written") != std::string::npos);
  w.start();
  REQUIRE(w.until([&] { return w.writer->counters().written > 0; }));
  w.stop();
  const std::string all =
      one(w.file(),
          "SELECT count(*) = max(record_number) AND count(DISTINCT record_number) = "
          "count(*) FROM mcp_calls");
  CHECK(all == "1");
  CHECK(w.check().broken == "");
}

TEST_CASE("rows that do not fit into the spill file are counted and recorded as lost") {
  World w;
  w.config.spill_bytes = 65'536;
  w.start();
  w.put(1, 10);
  REQUIRE(w.until([&] { return w.writer->counters().written == 10; }));
  std::uint64_t number = 11;
  {
    FullDisk full(w.bytes() + (400u << 10));
    while (w.writer->counters().write_errors == 0) w.put_slowly(number++);
    CHECK(w.writer->counters().written > 10);
    while (w.writer->counters().lost == 0) w.put(number++, 1);
  }
  REQUIRE(w.until(
      [&] { return w.writer->counters().written + w.writer->counters().lost == number - 1; }));
  const std::uint64_t lost = w.writer->counters().lost;
  w.stop();
  CHECK(w.kinds().find("lost") != std::string::npos);
  CHECK(one(w.file(), "SELECT detail FROM audit_marks WHERE kind = 'lost'")
            .starts_with(std::to_string(lost) + " records"));
  CHECK(w.check().broken == "");
}

TEST_CASE("block: rows wait, and rows that exceed the queue are rejected") {
  World w;
  w.config.block = true;
  w.start();
  std::uint64_t number = 1;
  {
    FullDisk full(w.bytes() + (400u << 10));
    while (w.writer->counters().write_errors == 0) w.put_slowly(number++);
    CHECK(w.writer->counters().written > 0);
    while (w.writer->put(row(number))) ++number;
    CHECK(number > Writer::max_rows);
    CHECK(w.writer->counters().lost == 0);
    CHECK(w.writer->counters().spilled == 0);
  }
  REQUIRE(w.until([&] { return w.writer->counters().written == number - 1; }));
  w.put(number, 1);
  w.stop();
  CHECK(w.calls() == std::to_string(number));
  CHECK(w.kinds() == "start,end");
}

TEST_CASE("block: a process can start if the database is not writable, and rows wait") {
  World w;
  w.config.block = true;
  w.start();
  w.put(1, 10);
  w.stop();
  {
    FullDisk full(1024);
    w.start();
    w.put(11, 5);
    REQUIRE(w.until([&] { return w.writer->counters().write_errors >= 2; }));
    CHECK(w.writer->counters().written == 0);
  }
  REQUIRE(w.until([&] { return w.writer->counters().written == 5; }));
  w.stop();
  CHECK(w.calls() == "15");
  CHECK(w.kinds() == "start,end,start,end");
  CHECK(w.check().broken == "");
}

TEST_CASE("an unusable folder is reported at start") {
  World w;
  w.start();
  w.put(1, 1);
  w.stop();
  std::filesystem::remove(w.file());
  std::filesystem::create_directory(w.file());
  Writer writer(w.config, "book", [](std::int32_t, const std::string &) {}, w.signer.function());
  CHECK(writer.start(w.folder.path).find("cannot be opened") != std::string::npos);
}

TEST_CASE("a row that is spilled at shutdown and repeated later is written once") {
  World w;
  w.config.full = w.config.block = true;
  w.start();
  for (std::uint64_t number = 1; number <= 5; ++number) {
    Row large = row(number);
    large.response = std::string(100'000, 'r');
    REQUIRE(w.writer->put(std::move(large)));
  }
  REQUIRE(w.until([&] { return w.writer->counters().written == 5; }));
  {
    FullDisk full(400u << 10);
    w.put(6, 5);
    REQUIRE(w.until([&] { return w.writer->counters().write_errors > 0; }));
    w.stop();
  }
  w.start();
  w.put(6, 10);
  w.stop();
  CHECK(w.calls() == "15");
  CHECK(w.kinds().find("gap") == std::string::npos);
  CHECK(w.check().broken == "");
}

TEST_CASE("lost rows are recorded, if necessary by the next process") {
  World w;
  w.config.spill_bytes = 65'536;
  w.start();
  w.put(1, 10);
  REQUIRE(w.until([&] { return w.writer->counters().written == 10; }));
  std::uint64_t lost = 0;
  {
    FullDisk full(w.bytes() + (400u << 10));
    std::uint64_t number = 11;
    while (w.writer->counters().write_errors == 0) w.put_slowly(number++);
    CHECK(w.writer->counters().written > 10);
    for (; w.writer->counters().lost == 0; ++number) w.put(number, 1);
    REQUIRE(w.until([&] { return w.writer->counters().write_errors > 0; }));
    w.writer->stop();
    lost = w.writer->counters().lost;
    w.stop();
  }
  w.start();
  w.stop();
  CHECK(one(w.file(), "SELECT detail FROM audit_marks WHERE kind = 'lost'")
            .starts_with(std::to_string(lost) + " records"));
  w.start();
  w.stop();
  CHECK(one(w.file(), "SELECT count(*) FROM audit_marks WHERE kind = 'lost'") == "1");
}

TEST_CASE("a damaged file is left in place, and the next file continues after the readable rows") {
  World w;
  w.config.segment_bytes = 256u << 10;
  w.start();
  for (std::uint64_t number = 1; number <= 40; ++number) {
    Row large = row(number);
    large.response = std::string(20'000, 'r');
    REQUIRE(w.writer->put(std::move(large)));
    REQUIRE(w.until([&] { return w.writer->counters().written == number; }));
  }
  w.stop();
  const auto files = record_store::segment_files(w.folder.path);
  REQUIRE(files.size() >= 2);
  const std::uint32_t last = files.back().number;
  SECTION("a locked file is not damaged") {
    record_store::Database other;
    REQUIRE(other.open(files.back().path, SQLITE_OPEN_READWRITE) == SQLITE_OK);
    REQUIRE(other.run("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; "
                      "CREATE TABLE IF NOT EXISTS audit_segment (x); COMMIT") == SQLITE_OK);
    w.config.block = true;
    w.start();
    other.close();
    w.put(100, 1);
    REQUIRE(w.until([&] { return w.writer->counters().written == 1; }));
    w.stop();
    CHECK(record_store::segment_files(w.folder.path).back().number == last);
    CHECK(w.check().broken == "");
  }
  SECTION("a file that is not a database is replaced") {
    std::filesystem::resize_file(files.back().path, 0);
    std::ofstream(files.back().path) << std::string(5000, 'x');
    const std::string before = one(files[files.size() - 2].path, "SELECT max(seq) FROM mcp_calls");
    w.start();
    w.stop();
    REQUIRE(record_store::segment_files(w.folder.path).back().number == last + 1);
    const std::uint64_t after =
        std::stoull(one(w.file(last + 1), "SELECT previous_seq FROM audit_segment"));
    CHECK(after >= std::stoull(before) + Store::damage_leap);
  }
}

namespace {

// Damages a file that is not open: overwrites the first page of a table or index. If `bytes` is
// set, overwrites only these bytes at offset `at` of the page.
void damage(const std::string &path, const std::string &what, std::uint64_t at = 0,
            std::string bytes = {}) {
  const auto page =
      std::stoull(one(path, "SELECT rootpage FROM sqlite_schema WHERE name = '" + what + "'"));
  const auto size = std::stoull(one(path, "PRAGMA page_size"));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>((page - 1) * size + at));
  file << (bytes.empty() ? std::string(size, '\xff') : bytes);
}

}  // namespace

TEST_CASE("a file with damage that only writes detect is left in place, and no row is missing") {
  World w;
  w.start();
  w.put(1, 300);
  w.stop();
  const std::uint64_t before = std::stoull(one(w.file(), "SELECT max(seq) FROM audit_marks"));
  std::string kinds;  // marks of the next file
  SECTION("in mcp_calls") {
    damage(w.file(), "mcp_calls_server_name");
    kinds = "carried,end";
  }
  SECTION("in mcp_calls, mode full") {
    w.config.full = w.config.block = true;
    damage(w.file(), "mcp_calls_timestamp");
    kinds = "carried,end";
  }
  SECTION("in audit_checkpoints") {
    w.config.checkpoint_rows = 5;
    damage(w.file(), "audit_checkpoints");
  }
  w.start();
  w.put(301, 50);
  REQUIRE(w.until([&] { return w.writer->counters().written == 50; }));
  w.put(351, 50);
  w.stop();
  const auto files = record_store::segment_files(w.folder.path);
  REQUIRE(files.size() == 2);
  CHECK(w.logged.size() >= 1);
  const std::string last = w.file(2);
  CHECK(one(last, "SELECT max(record_number) FROM mcp_calls") == "400");
  CHECK(one(last, "SELECT previous_file FROM audit_segment") == "calls-1-000001.db");
  CHECK(std::stoull(one(last, "SELECT previous_seq FROM audit_segment")) >= before);
  if (!kinds.empty()) {
    CHECK(one(last, "SELECT group_concat(kind) FROM audit_marks") == kinds);
    CHECK(one(last, "SELECT count(*) FROM mcp_calls") == "100");
    // This process has added only one row to the damaged file: its `start` mark.
    CHECK(std::stoull(one(last, "SELECT previous_seq FROM audit_segment")) == before + 1);
  }
  CHECK(w.check().broken.find("calls-1-000001.db") != std::string::npos);
  record_store::VerifyOptions alone;
  alone.public_key = w.signer.public_key();
  alone.whole_chain = false;
  const auto report = record_store::verify_chain({files.back()}, alone);
  CHECK(report.broken == "");
  CHECK(report.checkpoints >= 1);
  // The next process must not use the damaged file.
  w.logged.clear();
  w.start();
  w.put(401, 1);
  w.stop();
  CHECK(w.logged.empty());
  CHECK(record_store::segment_files(w.folder.path).size() == 2);
}

TEST_CASE("if the next file cannot be created, no others are created, and queued rows are kept") {
  World w;
  w.start();
  w.put(1, 300);
  w.stop();
  damage(w.file(), "mcp_calls_server_name");
  w.start();
  std::filesystem::create_directory(w.file(2));
  w.put(301, 10);
  REQUIRE(w.until([&] { return w.writer->counters().write_errors >= 3; }));
  CHECK(record_store::segment_files(w.folder.path).size() == 2);
  CHECK(w.writer->counters().lost == 0);
  std::filesystem::remove(w.file(2));
  REQUIRE(w.until([&] { return w.writer->counters().written == 10; }));
  w.stop();
  CHECK(one(w.file(2), "SELECT count(*) FROM mcp_calls") == "10");
  CHECK(record_store::segment_files(w.folder.path).size() == 2);
}

TEST_CASE("a process can start even if no mark can be written to its damaged file") {
  World w;
  w.start();
  w.put(1, 300);
  w.stop();
  // Damages the free space of the page, which SQLite checks only when writing.
  damage(w.file(), "audit_marks", 1, "\xff\xff");
  const std::string before = one(w.file(), "SELECT max(seq) FROM audit_marks");
  w.start();
  w.put(301, 10);
  w.stop();
  REQUIRE(record_store::segment_files(w.folder.path).size() == 2);
  CHECK(one(w.file(2), "SELECT count(*) FROM mcp_calls") == "10");
  CHECK(one(w.file(2), "SELECT group_concat(kind) FROM audit_marks") == "carried,start,end");
  CHECK(one(w.file(2), "SELECT previous_seq FROM audit_segment") == before);
}

TEST_CASE("a file of another schema version is left unchanged, and a new file follows it") {
  World w;
  w.start();
  w.put(1, 10);
  w.stop();
  const auto run = [&](const char *sql) {
    record_store::Database db;
    REQUIRE(db.open(w.file(), SQLITE_OPEN_READWRITE) == SQLITE_OK);
    REQUIRE(db.run(sql) == SQLITE_OK);
  };
  const auto previous = [&] {
    return std::stoull(one(w.file(2), "SELECT previous_seq FROM audit_segment"));
  };
  run("PRAGMA user_version = 1");
  SECTION("the new file starts after its last row") {
    w.start();
    w.put(6, 10);  // five of these rows exist in the previous file
    w.stop();
    CHECK(one(w.file(1), "SELECT count(*) FROM mcp_calls") == "10");
    CHECK(one(w.file(1), "SELECT count(*) FROM audit_marks") == "2");
    CHECK(previous() == 12);
    CHECK(one(w.file(2), "SELECT group_concat(record_number) FROM mcp_calls") == "11,12,13,14,15");
    CHECK(one(w.file(2), "SELECT min(id) FROM mcp_calls") == "11");
    CHECK(one(w.file(2), "SELECT group_concat(kind) FROM audit_marks") == "start,end");
    CHECK(w.check().broken.find("has schema version 1") != std::string::npos);
    const std::string version =
        "PRAGMA user_version = " + std::to_string(record_store::schema_version);
    // Sets the same version in all files, so they can be verified as one chain.
    run(version.c_str());
    CHECK(w.check().broken == "");
    CHECK(w.check().rows == 12 + 7);
  }
  SECTION("an earlier version without a table") {
    run("DROP TABLE call_intents");
    w.start();
    w.put(6, 10);
    w.stop();
    CHECK(previous() == 12);
    CHECK(one(w.file(2), "SELECT count(*) FROM mcp_calls") == "5");
    CHECK(one(w.file(2), "SELECT group_concat(kind) FROM audit_marks") == "start,end");
    CHECK(w.logged.at(0).find("uses schema version 1") != std::string::npos);
  }
  SECTION("seq skips ahead if the file is unreadable") {
    run("ALTER TABLE mcp_calls RENAME TO requests");
    w.start();
    w.put(11, 1);
    w.stop();
    CHECK(previous() == Store::damage_leap);
    CHECK(one(w.file(2), "SELECT count(*) FROM mcp_calls") == "1");
  }
}

TEST_CASE("the WAL stays near its limit, regardless of the page size") {
  World w;
  w.config.full = GENERATE(false, true);
  w.start();
  std::uint64_t most = 0;
  for (std::uint64_t number = 1; number <= 200; ++number) {
    Row large = row(number);
    large.response = std::string(100'000, 'r');
    REQUIRE(w.writer->put(std::move(large)));
    if (number % 10 != 0) continue;
    REQUIRE(w.until([&] { return w.writer->counters().written == number; }));
    most = std::max<std::uint64_t>(most, std::filesystem::file_size(w.file() + "-wal"));
  }
  CHECK(most > Store::log_bytes / 2);
  CHECK(most < 2 * Store::log_bytes);
}

#ifndef BH_NO_THREADS_AFTER_FORK
namespace {

// Counts the syncs of the WAL files.
struct CountedLogs {
  static inline sqlite3_vfs *real = nullptr;
  static inline sqlite3_vfs vfs{};
  static inline sqlite3_io_methods methods{};
  static inline int (*real_sync)(sqlite3_file *, int) = nullptr;
  static inline std::atomic<int> syncs{0};

  CountedLogs() {
    real = sqlite3_vfs_find(nullptr);
    vfs = *real;
    vfs.zName = "counted-logs";
    vfs.xOpen = [](sqlite3_vfs *, const char *name, sqlite3_file *file, int flags, int *out) {
      const int result = real->xOpen(real, name, file, flags, out);
      if (result != SQLITE_OK || (flags & SQLITE_OPEN_WAL) == 0) return result;
      methods = *file->pMethods;
      real_sync = methods.xSync;
      methods.xSync = [](sqlite3_file *log, int how) {
        ++syncs;
        return real_sync(log, how);
      };
      file->pMethods = &methods;
      return result;
    };
    sqlite3_vfs_register(&vfs, 1);
  }
  ~CountedLogs() {
    sqlite3_vfs_register(real, 1);
    sqlite3_vfs_unregister(&vfs);
  }
};

}  // namespace

TEST_CASE("signed rows are on disk, even if another process prevents copying the WAL") {
  World w;
  const CountedLogs logs;
  w.config.checkpoint_rows = 5;
  w.signer.answers = false;
  w.start();
  w.put(1, 1);
  REQUIRE(w.until([&] { return w.writer->counters().written == 1; }));
  // The child process holds SQLite's checkpoint lock.
  int tell[2], end[2];
  REQUIRE(::pipe(tell) == 0);
  REQUIRE(::pipe(end) == 0);
  const pid_t other = ::fork();
  if (other == 0) {
    const int fd = ::open((w.file() + "-shm").c_str(), O_RDWR);
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_start = 121;
    lock.l_len = 1;
    char byte = ::fcntl(fd, F_SETLK, &lock) == 0 ? 'y' : 'n';
    if (::write(tell[1], &byte, 1) != 1) ::_exit(1);
    ::close(end[1]);
    ::_exit(::read(end[0], &byte, 1) == 0 ? 0 : 1);
  }
  char byte = 0;
  REQUIRE(::read(tell[0], &byte, 1) == 1);
  REQUIRE(byte == 'y');
  const int before = CountedLogs::syncs;
  w.put(2, 10);
  REQUIRE(w.until([&] { return w.signer.asked > 0; }));
  CHECK(CountedLogs::syncs > before);
  ::close(end[1]);
  ::waitpid(other, nullptr, 0);
  for (const int fd : {tell[0], tell[1], end[0]}) ::close(fd);
  w.stop();
}

TEST_CASE("after a kill at any time, no file is damaged, and missing rows are detected", "[kill]") {
  const char *wanted = std::getenv("BULKHEAD_CRASH_ROUNDS");
  const int rounds = wanted == nullptr ? 5 : std::atoi(wanted);
  World w;
  w.config.segment_bytes = 512u << 10;
  w.config.max_bytes = 64u << 20;
  w.config.checkpoint_rows = 50;
  std::srand(7);
  std::uint64_t first = 1;
  for (int round = 0; round < rounds; ++round) {
    int tell[2];
    REQUIRE(::pipe(tell) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      w.start();
      for (std::uint64_t i = first;; ++i) {
        while (!w.writer->put(row(i))) ::usleep(100);
        if (i % 8 == 0 && ::write(tell[1], &i, sizeof i) != sizeof i) ::_exit(1);
      }
    }
    ::close(tell[1]);
    std::uint64_t said = 0;
    const std::uint64_t until = first + 64 + static_cast<std::uint64_t>(std::rand() % 2000);
    while (said < until && ::read(tell[0], &said, sizeof said) == sizeof said) {
    }
    ::usleep(static_cast<useconds_t>(std::rand() % 20'000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(tell[0]);
    const auto report = w.check();
    INFO("round " << round);
    REQUIRE(report.broken == "");
    first = said + 20'000;
  }
  w.start();
  w.put(first, 10);
  w.stop();
  const auto report = w.check();
  CHECK(report.broken == "");
  std::size_t unclean = 0;
  for (const std::string &note : report.notes) unclean += note.find("unclean") != note.npos ? 1 : 0;
  CHECK(unclean == static_cast<std::size_t>(std::min(rounds, 100)));
}
#endif
