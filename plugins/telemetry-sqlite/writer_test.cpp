#include <catch2/catch.hpp>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
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
  std::string calls() { return one(file(), "SELECT count(*) FROM mcp_calls"); }
  std::string kinds() {
    return one(file(), "SELECT group_concat(kind) FROM (SELECT kind FROM audit_marks ORDER BY id)");
  }
  record_store::VerifyReport check() { return verify(folder, &signer); }
};

// Files of this process cannot grow beyond that.
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

TEST_CASE("the next process goes on where the one before has ended") {
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

TEST_CASE("records that are offered again are not written again") {
  World w;
  w.start();
  w.put(1, 10);
  w.stop();
  w.start();
  w.put(6, 10);
  // The same number at another time is another record: the clock went back.
  Row other = row(3);
  other.start_unix_ns += 1'000'000'000;
  REQUIRE(w.writer->put(std::move(other)));
  w.stop();
  CHECK(w.calls() == "16");
}

TEST_CASE("a missing number is a gap that shows") {
  World w;
  w.start();
  w.put(1, 5);
  w.put(9, 5);
  w.stop();
  CHECK(w.kinds() == "start,gap,end");
  CHECK(one(w.file(), "SELECT detail FROM audit_marks WHERE kind = 'gap'")
            .starts_with("records 6 to 8 did not come"));
  CHECK(w.check().notes.size() == 1);
}

TEST_CASE("policy, lists and credentials in a row") {
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

TEST_CASE("two gateways with one folder write two chains") {
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

TEST_CASE("full files are followed by others; the oldest go") {
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

TEST_CASE("without a signature the record goes on, and says so") {
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

TEST_CASE("a signature of another key, or for other rows, is named") {
  World w;
  w.start();
  w.put(1, 10);
  w.stop();
  Signer other;
  CHECK(verify(w.folder, &other).broken.find("is not signed by this key") != std::string::npos);
  record_store::Database db;
  REQUIRE(db.open(w.file(), SQLITE_OPEN_READWRITE) == SQLITE_OK);
  REQUIRE(db.run("UPDATE audit_checkpoints SET head = zeroblob(32)") == SQLITE_OK);
  CHECK(w.check().broken.find("is for another row") != std::string::npos);
}

TEST_CASE("what cannot be written goes to the spill file, and comes back") {
  World w;
  w.start();
  w.put(1, 100);
  REQUIRE(w.until([&] { return w.writer->counters().written == 100; }));
  {
    FullDisk full(400u << 10);
    std::uint64_t number = 101;
    // Slowly: what has come until the failure is known must find room.
    while (w.writer->counters().write_errors == 0 || w.writer->counters().spilled == 0) {
      w.put(number++, 1);
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
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

TEST_CASE("rows that find no room in the spill file are counted, and the loss is on record") {
  World w;
  w.config.spill_bytes = 65'536;
  w.start();
  w.put(1, 10);
  REQUIRE(w.until([&] { return w.writer->counters().written == 10; }));
  std::uint64_t number = 11;
  {
    FullDisk full(400u << 10);
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

TEST_CASE("block: rows wait, and none is taken that has no room") {
  World w;
  w.config.block = true;
  w.start();
  std::uint64_t number = 1;
  {
    FullDisk full(400u << 10);
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

#ifndef BH_NO_THREADS_AFTER_FORK
TEST_CASE("killed at any moment: nothing is damaged, and what is missing shows") {
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
