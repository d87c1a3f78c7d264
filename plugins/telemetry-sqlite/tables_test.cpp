// Tests the rows of each record kind, and mode "full".
#include <catch2/catch.hpp>

#include <bulkhead/abi/ext/policy.h>
#include <bulkhead/abi/ext/telemetry.h>
#include <signal.h>
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
  std::unique_ptr<Writer> writer;

  World() { config.spill_bytes = 256u << 10; }
  void write(std::vector<Row> rows) {
    writer = std::make_unique<Writer>(
        config, "book", [](std::int32_t, const std::string &) {}, signer.function());
    REQUIRE(writer->start(folder.path) == "");
    const std::uint64_t n = rows.size();
    for (Row &row : rows) REQUIRE(writer->put(std::move(row)));
    for (int i = 0; i < 10'000 && settled() < n; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    writer.reset();
    CHECK(verify(folder, &signer).broken == "");
  }
  std::uint64_t settled() const { return writer->counters().written + writer->counters().known; }
  std::string one(const std::string &sql) {
    return testing::one(folder / record_store::segment_name(1, 1), sql);
  }
};

Row of_kind(std::uint32_t kind, std::uint64_t number, std::string detail = {}) {
  Row out = row(number);
  out.kind = kind;
  out.detail = std::move(detail);
  out.trace_id = "trace";
  out.request = out.response = "";
  return out;
}

}  // namespace

TEST_CASE("a tool's result with isError is recorded as an error") {
  World w;
  std::vector<Row> rows;
  for (const char *result :
       {R"({"content":[],"isError":true})", R"({"isError" : true,"content":[]})",
        R"({"content":[{"isError":true}]})", R"({"content":["isError",true],"isError":false})",
        R"({"a":"\"isError\":true","b":"{"})", R"({"isError")", R"({"a":"\)", ""}) {
    Row one = row(rows.size() + 1);
    one.method = "tools/call";
    one.response = result;
    rows.push_back(std::move(one));
  }
  rows.push_back(rows.front());
  rows.back().number = rows.size();
  rows.back().method = "prompts/get";
  w.write(std::move(rows));
  CHECK(w.one("SELECT group_concat(id) FROM mcp_calls WHERE flags & 65536") == "1,2");
}

TEST_CASE("HTTP requests of tools are recorded") {
  World w;
  w.write(
      {of_kind(BH_RECORD_NET, 1,
               R"({"domain":"a.test","port":443,"decision":"allowed","method":"GET","path":"/x",)"
               R"("status_code":200,"bytes_received":12,"duration_ms":3})"),
       of_kind(BH_RECORD_NET, 2,
               R"({"domain":"b.test","port":80,"decision":"denied","reason":"blocked"})")});
  CHECK(w.one("SELECT domain||port||decision||method||path||status_code||bytes_received||"
              "duration_ms||policy_action||trace_id||server_name FROM net_events WHERE "
              "record_number = 1") == "a.test443allowedGET/x200123allowtracelocal");
  CHECK(w.one("SELECT domain||decision||policy_action||policy_reason||ifnull(status_code,'-') FROM "
              "net_events WHERE record_number = 2") == "b.testdeniedblockblocked-");
  CHECK(w.one("SELECT count(*) FROM mcp_calls") == "0");
}

TEST_CASE("file changes, snapshots, approvals and intents are recorded") {
  World w;
  w.write({of_kind(BH_RECORD_FS, 1, R"({"action":"modified","path":"a.txt","size":7})"),
           of_kind(BH_RECORD_SNAPSHOT, 2, R"({"slot":3,"origin":"auto","files_count":2})"),
           of_kind(BH_RECORD_APPROVAL, 3,
                   R"({"id":"q","status":"approved","digest":"d","surface":"api","scope":"once"})"),
           of_kind(BH_RECORD_INTENT, 4)});
  CHECK(w.one("SELECT action||path||size FROM fs_events") == "modifieda.txt7");
  CHECK(w.one("SELECT slot||origin||files_count||ifnull(name,'-') FROM snapshot_events") ==
        "3auto2-");
  CHECK(
      w.one("SELECT approval_id||status||surface||scope||arguments_digest||server_name||tool_name "
            "FROM approvals") == "qapprovedapioncedlocaltool");
  CHECK(w.one("SELECT method||tool_name||record_number FROM call_intents") == "tools/calltool4");
}

TEST_CASE("a changed policy is recorded as a mark") {
  World w;
  w.write({of_kind(BH_RECORD_POLICY, 1,
                   R"j({"generation":1,"rules":0,"digest":"d1","policies":"p (x)","changes":""})j"),
           of_kind(BH_RECORD_POLICY, 2,
                   R"j({"generation":2,"rules":1,"digest":"d2","policies":"p (x), q (y)",)j"
                   R"("changes":"1 rule added"})")});
  CHECK(w.one("SELECT group_concat(detail, '|') FROM audit_marks WHERE kind = 'policy'") ==
        "generation 1: 0 rules, digest d1, by p (x)|"
        "generation 2: 1 rule, digest d2, by p (x), q (y); 1 rule added");
  // The marks have the times of the records, like the rows of calls.
  CHECK(w.one("SELECT group_concat(timestamp, '|') FROM audit_marks WHERE kind = 'policy'") ==
        "2026-09-21T14:13:20.001Z|2026-09-21T14:13:20.002Z");
}

TEST_CASE("another file of a plugin is recorded as a mark") {
  World w;
  w.write(
      {of_kind(
           BH_RECORD_PLUGIN, 1,
           R"j({"plugin":"tools.mine","change":"swap: 1 (sha256 a) replaced by 2 (sha256 b)"})j"),
       of_kind(BH_RECORD_PLUGIN, 2, R"j({"plugin":"tools.other","change":"file changed"})j")});
  CHECK(w.one("SELECT group_concat(detail, '|') FROM audit_marks WHERE kind = 'plugin'") ==
        "tools.mine: swap: 1 (sha256 a) replaced by 2 (sha256 b)|tools.other: file changed");
  CHECK(w.one("SELECT min(timestamp) FROM audit_marks WHERE kind = 'plugin'") ==
        "2026-09-21T14:13:20.001Z");
}

TEST_CASE("an invalid detail is recorded as a mark, and an unknown kind is ignored") {
  World w;
  const std::uint32_t kinds[] = {BH_RECORD_NET,      BH_RECORD_FS,     BH_RECORD_SNAPSHOT,
                                 BH_RECORD_APPROVAL, BH_RECORD_POLICY, BH_RECORD_PLUGIN};
  std::vector<Row> rows;
  for (const std::uint32_t kind : kinds) {
    for (const char *detail : {"", "[]", "{", R"({"action":"eaten","path":"x","status":"?"})"}) {
      rows.push_back(of_kind(kind, rows.size() + 1, detail));
    }
  }
  rows.push_back(of_kind(99, rows.size() + 1, "{}"));
  rows.push_back(row(rows.size() + 1));
  w.write(std::move(rows));
  CHECK(w.one("SELECT count(*) FROM audit_marks WHERE kind = 'unreadable'") == "24");
  CHECK(w.one("SELECT count(*) FROM mcp_calls") == "1");
  CHECK(w.one("SELECT count(*) FROM audit_marks WHERE kind = 'gap'") == "0");
}

TEST_CASE("each file has one identity row, which is updated") {
  World w;
  w.config.segment_bytes = 512u << 10;
  std::vector<Row> rows = {of_kind(BH_RECORD_IDENTITY, 1, R"({"profile":"/a","user":"me"})"),
                           of_kind(BH_RECORD_IDENTITY, 2, R"({"profile":"/b","user":"me"})")};
  w.write(std::move(rows));
  CHECK(w.one("SELECT group_concat(profile_id || user_id) FROM session_identity") == "/bme");
  rows = {of_kind(BH_RECORD_IDENTITY, 3, R"({"profile":"/c","user":"me"})")};
  for (std::uint64_t i = 4; i < 24; ++i) {
    rows.push_back(row(i));
    rows.back().response = std::string(40'000, 'r');
  }
  w.write(std::move(rows));
  w.write({row(24)});  // exceeds segment_bytes
  w.write({row(25)});
  const auto files = record_store::segment_files(w.folder.path);
  REQUIRE(files.size() > 1);
  for (const auto &file : files) {
    CHECK(testing::one(file.path, "SELECT count(*) || max(profile_id) FROM session_identity") ==
          "1/c");
  }
}

TEST_CASE("a decision by a rule is a security event, and a call that no rule decides is not") {
  World w;
  Row blocked = row(1), allowed = row(2), plain = row(3), failed = row(4), usual = row(5);
  blocked.outcome = BH_OUTCOME_REFUSED;
  blocked.action = BH_VERDICT_BLOCK;
  blocked.rule = "r1";
  blocked.reason = "because";
  allowed.action = plain.action = usual.action = BH_VERDICT_ALLOW;
  usual.rule = "security.rules.mcp.default";
  allowed.rule = "r2";
  failed.outcome = BH_OUTCOME_REFUSED;
  failed.action = BH_VERDICT_BLOCK;
  failed.rule = "policy-timeout";
  failed.error = "too late";
  w.write({blocked, allowed, plain, failed, usual});
  CHECK(w.one("SELECT group_concat(final_action || ':' || rule_id || ':' || ifnull(reason, '')) "
              "FROM security_events") ==
        "block:r1:because,allow:r2:,error:policy-timeout:too late");
  CHECK(w.one("SELECT count(*) FROM security_events WHERE event_id GLOB "
              "'[0-9a-f][0-9a-f][0-9a-f][0-9a-f]*' AND length(event_id) = 12") == "3");
}

TEST_CASE("repeated records of any kind are written only once") {
  World w;
  const auto rows = [] {
    return std::vector<Row>{of_kind(BH_RECORD_NET, 1, R"({"domain":"a","decision":"error"})"),
                            of_kind(BH_RECORD_FS, 2, R"({"action":"created","path":"p"})"),
                            of_kind(BH_RECORD_SNAPSHOT, 3, R"({"slot":1,"origin":"auto"})"),
                            of_kind(BH_RECORD_APPROVAL, 4, R"({"id":"q","status":"pending"})"),
                            of_kind(BH_RECORD_INTENT, 5),
                            row(6)};
  };
  w.write(rows());
  w.write(rows());
  for (const char *table :
       {"net_events", "fs_events", "snapshot_events", "approvals", "call_intents", "mcp_calls"}) {
    CHECK(w.one("SELECT count(*) FROM " + std::string(table)) == "1");
  }
}

TEST_CASE("details are masked like all other strings") {
  World w;
  w.write({of_kind(BH_RECORD_FS, 1,
                   R"({"action":"created","path":"/x/ghp_)" + std::string(36, 'a') + "\"}")});
  CHECK(w.one("SELECT path FROM fs_events").find("aaaa") == std::string::npos);
}

#ifndef BH_NO_THREADS_AFTER_FORK
TEST_CASE("full: records reported as committed are in the file after a crash", "[kill]") {
  const char *wanted = std::getenv("BULKHEAD_CRASH_ROUNDS");
  const int rounds = wanted == nullptr ? 5 : std::atoi(wanted);
  World w;
  w.config.full = w.config.block = true;
  w.config.checkpoint_rows = 20;
  std::srand(11);
  std::uint64_t first = 1;
  for (int round = 0; round < rounds; ++round) {
    int tell[2];
    REQUIRE(::pipe(tell) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      Writer writer(
          w.config, "book", [](std::int32_t, const std::string &) {}, w.signer.function(),
          [&](std::uint64_t below) {
            if (::write(tell[1], &below, sizeof below) != sizeof below) ::_exit(1);
          });
      if (!writer.start(w.folder.path).empty()) ::_exit(2);
      for (std::uint64_t i = first;; ++i) {
        while (!writer.put(row(i))) ::usleep(100);
      }
    }
    ::close(tell[1]);
    std::uint64_t said = 0;
    const std::uint64_t until = first + 1 + static_cast<std::uint64_t>(std::rand() % 500);
    while (said < until && ::read(tell[0], &said, sizeof said) == sizeof said) {
    }
    ::usleep(static_cast<useconds_t>(std::rand() % 5'000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    // Reads the reports that the child process wrote before it was killed.
    for (std::uint64_t more; ::read(tell[0], &more, sizeof more) == sizeof more;) said = more;
    ::close(tell[0]);
    INFO("round " << round);
    REQUIRE(said > first);
    REQUIRE(verify(w.folder, &w.signer).broken == "");
    CHECK(w.one("SELECT count(*) FROM mcp_calls WHERE record_number >= " + std::to_string(first) +
                " AND record_number < " + std::to_string(said)) == std::to_string(said - first));
    first = said + 100'000;
  }
}
#endif
