// Tests the client with a scripted aggregator. tests/e2e/aggregator.mjs and aggregator_drive_test
// use the real aggregator.
#include <bulkhead-aggregator/client.hpp>
#include <catch2/catch.hpp>

#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

using namespace bh::aggregator;
using Kind = Reply::Kind;

namespace {

Options fake(Codec codec = Codec::msgpack) {
  Options options;
  options.program = FAKE_AGGREGATOR;
  options.arguments = {};
  options.codec = codec;
  options.timeout_ms = 20'000;
  return options;
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// Collects replies from several threads. Must be created before the client, whose destructor calls
// the callbacks of pending requests.
class Collected {
 public:
  Client::Callback one() {
    return [this](Reply reply) {
      const std::lock_guard lock(mutex_);
      replies_.push_back(std::move(reply));
      changed_.notify_all();
    };
  }
  std::vector<Reply> wait(std::size_t n) {
    std::unique_lock lock(mutex_);
    REQUIRE(
        changed_.wait_for(lock, std::chrono::seconds(20), [&] { return replies_.size() >= n; }));
    return replies_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Reply> replies_;
};

}  // namespace

TEST_CASE("requests are answered in both codecs") {
  Options options = fake(GENERATE(Codec::ndjson, Codec::msgpack));
  options.definitions = R"([{"name":"a"}])";
  Client client(options);
  CHECK(client.pid() == -1);
  const Reply echo = client.call_tool("echo", R"({"x":[1,-2.5,"ä\"",null,true]})");
  CHECK(echo.ok());
  CHECK(echo.text == R"({"x":[1,-2.5,"ä\"",null,true]})");
  CHECK(client.pid() > 0);
  CHECK(client.call_tool("defined").text == R"([{"name":"a"}])");
  CHECK(client.list_tools().text == "[]");
  CHECK(client.list_servers().text == "[]");
  const Reply refused = client.call_tool("nothing");
  CHECK(refused.kind == Kind::refused);
  CHECK(refused.text == "no \"tool\"");
  CHECK(client.call_tool("garble").kind == Kind::garbled);
  CHECK(client.refresh(R"([{"name":"b"}])").ok());
  CHECK(client.call_tool("defined").text == R"([{"name":"b"}])");
}

TEST_CASE("large messages are sent, but messages above the limit are not") {
  Client client(fake());
  const std::string text = "\"" + std::string(9'000'000, 'x') + "\"";
  CHECK(client.call_tool("echo", text).text == text);
  const Reply over = client.call_tool("echo", "\"" + std::string(17'000'000, 'x') + "\"");
  CHECK(over.kind == Kind::not_sent);
  CHECK(client.call_tool("echo", "{").kind == Kind::not_sent);
  CHECK(client.call_tool("echo", "1").text == "1");
}

TEST_CASE("A15 replies are matched by id, even if out of order or requested by many threads") {
  Collected first;
  Client client(fake());
  client.send("call_tool", Client::named("name", "later", {}), first.one());
  CHECK(client.call_tool("echo", "1").text == "1");
  CHECK(first.wait(1)[0].text == "\"later\"");
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string own = std::to_string(t * 1000 + i);
        if (client.call_tool("echo", own).text == own) ++right;
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  CHECK(right == 200);
}

TEST_CASE("A23 when the process is killed, all pending requests fail immediately") {
  Options options = fake();
  options.timeout_ms = 600'000;  // these requests complete only when the process exits
  options.restart_pause_ms = 0;
  options.definitions = R"([{"name":"a"}])";
  Collected hanging;
  Client client(options);
  for (int i = 0; i < 10; ++i) {
    client.send("call_tool", Client::named("name", "hang", {}), hanging.one());
  }
  CHECK(client.call_tool("echo", "1").ok());  // the ten requests have been read before this one
  ::kill(client.pid(), SIGKILL);
  for (const Reply &reply : hanging.wait(10)) CHECK(reply.kind == Kind::lost);
  // The next call starts the process again with the same definitions.
  CHECK(client.call_tool("defined").text == R"([{"name":"a"}])");
}

TEST_CASE("if the process does not read, unsent requests are distinguished from sent requests") {
  Options options = fake();
  options.timeout_ms = 600'000;
  options.max_queued = 1'000'000;
  Collected waiting;
  Client client(options);
  REQUIRE(client.call_tool("echo", "1").ok());
  const pid_t pid = client.pid();
  ::kill(pid, SIGSTOP);
  const std::string large = "\"" + std::string(600'000, 'x') + "\"";
  for (int i = 0; i < 2; ++i) {
    client.send("call_tool", Client::named("name", "echo", large), waiting.one());
  }
  // The limit for queued bytes (max_queued) has been reached.
  CHECK(client.request("list_tools").kind == Kind::not_sent);
  ::kill(pid, SIGKILL);
  for (const Reply &reply : waiting.wait(2)) CHECK(reply.kind == Kind::not_sent);
}

TEST_CASE("restarts can be disabled or delayed") {
  Options options = fake();
  options.restart = GENERATE(false, true);
  options.restart_pause_ms = 600'000;
  Client client(options);
  CHECK(client.call_tool("die").kind == Kind::lost);
  const Reply next = client.call_tool("echo", "1");
  CHECK(next.kind == Kind::not_sent);
  CHECK(next.text.starts_with("the aggregator has ended"));
}

TEST_CASE("requests time out and are limited") {
  Options options = fake();
  options.max_pending = 2;
  Collected hanging;
  Client client(options);
  CHECK(client.call_tool("hang", {}, 20).kind == Kind::late);
  for (int i = 0; i < 2; ++i) {
    client.send("call_tool", Client::named("name", "hang", {}), hanging.one());
  }
  CHECK(client.list_tools().text == "too many requests are pending");
}

TEST_CASE("a missing program, or one that exits immediately, is reported") {
  Options options = fake();
  options.program = "/nowhere/bulkhead";
  Client none(options);
  const Reply reply = none.list_tools();
  CHECK(reply.kind == Kind::not_sent);
  CHECK(reply.text == "cannot start /nowhere/bulkhead: No such file or directory");
  options.program = "/bin/false";
  Client ends(options);
  const Kind kind = ends.list_tools().kind;
  CHECK((kind == Kind::lost || kind == Kind::not_sent));
}

TEST_CASE("A13 A14 shutdown and the destructor leak no process or descriptor") {
  const std::size_t before = open_descriptors();
  const bool stopped = GENERATE(false, true);
  Collected hanging;
  pid_t pid = 0;
  {
    Options options = fake();
    options.restart_pause_ms = 0;
    if (stopped) options.end_ms = 50;
    Client client(options);
    if (!stopped) {
      REQUIRE(client.call_tool("echo", "1").ok());
      pid = client.pid();
      CHECK(client.shutdown().ok());
      CHECK(client.pid() == -1);
      CHECK(::kill(pid, 0) == -1);
    }
    REQUIRE(client.call_tool("echo", "2").ok());
    pid = client.pid();
    client.send("call_tool", Client::named("name", "hang", {}), hanging.one());
    if (stopped) ::kill(pid, SIGSTOP);  // the process cannot exit by itself
  }
  CHECK_FALSE(hanging.wait(1)[0].ok());
  CHECK(::kill(pid, 0) == -1);
  CHECK(open_descriptors() == before);
}
