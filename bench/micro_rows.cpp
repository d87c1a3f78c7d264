// Measures the processor time of a row in the session database step by step: SQLite alone (with the
// same table, columns and settings), the store (rows in a hash chain), and the writer (masking,
// queue, thread and signatures). SQLite alone is the minimum cost of a record; it is also measured
// without the table's two indexes. Argument: rows per step (default 60000). Prints the medians of
// three runs in microseconds per row.
#include <bulkhead/abi/ext/policy.h>
#include <bulkhead/abi/ext/telemetry.h>
#include <sodium.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "record-store/chain.hpp"
#include "record-store/schema.hpp"
#include "telemetry-sqlite/store.hpp"
#include "telemetry-sqlite/time_text.hpp"
#include "telemetry-sqlite/writer.hpp"

namespace {

using namespace telemetry_sqlite;

constexpr std::size_t batch = Writer::batch_rows;
constexpr std::uint64_t base_ns = 1'790'000'000'000'000'000, step_ns = 50'000;

class Folder {
 public:
  Folder() {
    const char *home = std::getenv("HOME");  // not /tmp, which may be in memory
    std::string name = std::string(home == nullptr ? "." : home) + "/micro-rows-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create a folder");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string &path() const { return path_; }

 private:
  std::string path_;
};

double processor_us() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto us = [](const timeval &t) {
    return 1e6 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec);
  };
  return us(used.ru_utime) + us(used.ru_stime);
}

// Returns the row of a call of `echo` with 1 KB in each direction.
Row row_of(std::uint64_t number) {
  std::string text;
  while (text.size() < 1'000)
    text += "The quick brown fox, 42 lines of log output; \\\"quoted\\\" ";
  Row row;
  row.outcome = BH_OUTCOME_OK;
  row.action = BH_VERDICT_ALLOW;
  row.number = number;
  row.session = 3;
  row.start_unix_ns = base_ns + number * step_ns;
  row.duration_ns = 300'000;
  row.transport = "http";
  row.peer = "127.0.0.1:45678";
  row.principal = "local";
  row.process_name = "client";
  row.method = "tools/call";
  row.server = "u0";
  row.name = "echo";
  row.rule = "policy.default";
  row.request_id = std::to_string(number);
  row.request = R"({"name":"u0__echo","arguments":{"data":")" + text + "\"}}";
  row.response = R"({"content":[{"type":"text","text":")" + text + "\"}]}";
  row.params_bytes = row.request.size();
  row.result_bytes = row.response.size();
  row.trace_id = "0123456789abcdef0123456789abcdef";
  return row;
}

void must(bool good, const std::string &what) {
  if (!good) throw std::runtime_error(what);
}

void sqlite_alone(std::uint64_t rows, bool indexes) {
  const Folder folder;
  record_store::Database db;
  const auto run = [&](const std::string &sql) {
    must(db.run(sql.c_str()) == SQLITE_OK, sql + ": " + db.message());
  };
  must(db.open(folder.path() + "/a.db", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) == SQLITE_OK,
       "cannot create a file");
  run("PRAGMA page_size = 32768; PRAGMA cache_size = -8192; PRAGMA journal_mode = WAL;"
      "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = " +
      std::to_string(Store::log_bytes / 32768));
  run(std::string(record_store::schema_sql()));
  if (!indexes) run("DROP INDEX mcp_calls_server_name; DROP INDEX mcp_calls_timestamp");
  record_store::Statement insert;
  must(
      insert.prepare(db.get(),
                     "INSERT INTO mcp_calls (id, timestamp, server_name, method, tool_name, "
                     "request_id, request_preview, response_preview, decision, duration_ms, "
                     "process_name, bytes_sent, bytes_received, policy_mode, policy_action, "
                     "policy_rule, trace_id, target, outcome, transport, peer, principal, session, "
                     "duration_us, flags, record_number, seq, prev, hash) VALUES "
                     "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)") == SQLITE_OK,
      db.message());
  Row row = row_of(1);
  const std::string hash(record_store::Hash{}.size(), 'h');
  for (std::uint64_t number = 1; number <= rows; ++number) {
    if (number % batch == 1) run("BEGIN IMMEDIATE");
    const std::string timestamp = time_text(base_ns + number * step_ns);
    row.request_id = std::to_string(number);
    int at = 0;
    const auto text = [&](std::string_view value) { insert.bind(++at, value); };
    const auto integer = [&](std::uint64_t value) {
      insert.bind(++at, static_cast<std::int64_t>(value));
    };
    integer(number), text(timestamp), text(row.server), text(row.method), text(row.name);
    text(row.request_id), text(row.request), text(row.response), text("allowed"), integer(1);
    text(row.process_name), integer(row.params_bytes), integer(row.result_bytes), text("enforce");
    text("allow"), text(row.rule), text(row.trace_id), text(row.name), text("ok");
    text(row.transport), text(row.peer), text(row.principal), text("3"), integer(300), integer(0);
    integer(number), integer(number);
    for (int i = 0; i < 2; ++i) {
      sqlite3_bind_blob(insert.get(), ++at, hash.data(), static_cast<int>(hash.size()),
                        SQLITE_STATIC);
    }
    must(insert.step() == SQLITE_DONE, db.message());
    insert.reset();
    if (number % batch == 0 || number == rows) run("COMMIT");
  }
}

Config config_of_bench() {
  Config config;
  config.segment_bytes = 4ull << 30;  // one file
  config.max_bytes = 16ull << 30;
  return config;
}

void ignore(std::int32_t, const std::string &) {}

void store(std::uint64_t rows) {
  const Folder folder;
  Store store(folder.path(), 1, "bench", config_of_bench(), ignore);
  if (const std::string problem = store.open(); !problem.empty()) throw std::runtime_error(problem);
  Row row = row_of(1);
  for (std::uint64_t number = 1; number <= rows; ++number) {
    if (number % batch == 1) must(store.begin(), store.error());
    row.number = number;
    row.start_unix_ns = base_ns + number * step_ns;
    row.request_id = std::to_string(number);
    bool known = false;
    must(store.put(row, &known) && !known, store.error());
    if (number % batch == 0 || number == rows) must(store.commit(), store.error());
  }
  store.close();
}

void writer(std::uint64_t rows) {
  const Folder folder;
  unsigned char key[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES];
  crypto_sign_keypair(key, secret);
  const auto sign = [&](const std::string &statement, bh_signature *out) {
    out->unix_s = 5;
    std::memcpy(out->public_key, key, sizeof key);
    const std::string message = record_store::signed_message("bench", 5, statement);
    return crypto_sign_detached(out->signature, nullptr,
                                reinterpret_cast<const unsigned char *>(message.data()),
                                message.size(), secret) == 0;
  };
  Writer writer(config_of_bench(), "bench", ignore, sign);
  if (const std::string problem = writer.start(folder.path()); !problem.empty()) {
    throw std::runtime_error(problem);
  }
  const Row like = row_of(1);
  for (std::uint64_t number = 1; number <= rows; ++number) {
    Row row = like;
    row.number = number;
    row.start_unix_ns = base_ns + number * step_ns;
    row.request_id = std::to_string(number);
    while (!writer.put(std::move(row))) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  writer.stop();
  must(writer.counters().written == rows, "rows are missing");
}

double median_us(std::uint64_t rows, const std::function<void()> &step) {
  double us[3];
  for (double &one : us) {
    const double before = processor_us();
    step();
    one = (processor_us() - before) / static_cast<double>(rows);
  }
  std::sort(std::begin(us), std::end(us));
  return us[1];
}

}  // namespace

int main(int argc, char **argv) {
  const auto rows = static_cast<std::uint64_t>(std::max(argc > 1 ? std::atoi(argv[1]) : 60'000, 1));
  try {
    must(::sodium_init() >= 0, "libsodium cannot start");
    std::printf("SQLite alone           %5.1f us a row\n",
                median_us(rows, [&] { sqlite_alone(rows, true); }));
    std::printf("  without indexes      %5.1f\n",
                median_us(rows, [&] { sqlite_alone(rows, false); }));
    std::printf("the store, with hashes %5.1f\n", median_us(rows, [&] { store(rows); }));
    std::printf("the writer             %5.1f\n", median_us(rows, [&] { writer(rows); }));
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "micro_rows: %s\n", error.what());
    return 1;
  }
}
