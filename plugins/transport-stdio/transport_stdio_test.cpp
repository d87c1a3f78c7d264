#include "transport-stdio/transport_stdio.hpp"
#include "transport-stdio/parent_name.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <bulkhead/testing/fake_host.hpp>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using transport_stdio::TransportStdio;

namespace {

constexpr bh_session the_session = 42;
constexpr std::size_t max_kept = 1000;

// A fake host and the client's ends of two pipes.
class Fixture {
 public:
  explicit Fixture(const bh_limits &l = bh::testing::limits()) : limits(l) {
    table_.size = sizeof table_;
    table_.limits = &limits;
    table_.session_open = [](void *c, const bh_peer *peer, bh_session *out, bh_error *error) {
      Fixture &f = get(c);
      if (f.refuse) return bh::fail(error, BH_E_LIMIT, "too many sessions");
      f.transport = bh::view(peer->transport);
      f.process_name = bh::view(peer->process_name);
      *out = the_session;
      return bh_status{BH_OK};
    };
    table_.deliver = [](void *c, const bh_incoming *message, bh_delivery *out) -> bh_status {
      Fixture &f = get(c);
      f.wrong_handle =
          f.wrong_handle || message->session != the_session || (message->stream != 0) != f.carries;
      f.last_stream = message->stream;
      f.delivered.emplace_back(bh::view(message->message));
      out->kind = BH_DELIVERED_ANSWER;
      if (f.on_deliver) f.on_deliver(f.delivered.back());
      return BH_OK;
    };
    table_.session_close = [](void *c, bh_session, std::uint32_t how) {
      get(c).closes.push_back(how);
    };
    table_.finished = [](void *c) { ++get(c).finished; };
    resume_.size = sizeof resume_;
    resume_.carry = [](void *c, const bh_peer *peer, bh_session *out, bh_carried *before,
                       bh_error *) {
      Fixture &f = get(c);
      f.process_name = bh::view(peer->process_name);
      before->restored = f.carried.restored;
      before->last_stream = f.carried.last_stream;
      before->note = f.carried.note;
      f.left = f.kept;
      before->unread = bh::str(f.left);
      *out = the_session;
      return bh_status{BH_OK};
    };
    resume_.note = [](void *c, bh_session, std::uint64_t note) { get(c).carried.note = note; };
    resume_.settled = [](void *c, bh_session, std::uint64_t stream) {
      get(c).settled.push_back(stream);
    };
    resume_.keep = [](void *c, bh_session, bh_str bytes, std::int32_t more) -> bh_status {
      std::string &all = get(c).kept;
      if (more == 0) all.clear();
      all.append(bh::view(bytes));
      if (all.size() <= max_kept) return BH_OK;
      all.clear();
      return BH_E_LIMIT;
    };
    resume_.taken = [](void *c, bh_session, std::uint64_t n) { get(c).kept.erase(0, n); };
    host.user = this;
    host.add_ext(BH_EXT_HOST_TRANSPORT, &table_);
    flow_.size = sizeof flow_;
    flow_.output_full = [](void *c, bh_session, std::uint32_t full) {
      get(c).fulls.push_back(full);
    };
    REQUIRE(::pipe2(in_, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(out_, O_CLOEXEC) == 0);
    REQUIRE(::fcntl(out_[0], F_SETFL, O_NONBLOCK) == 0);
  }
  ~Fixture() {
    stop();
    for (int *fd : {&in_[0], &in_[1], &out_[0], &out_[1]}) shut(fd);
    CHECK(host.watches() == 0);
    CHECK(host.timers() == 0);
    CHECK(host.faults().empty());
    CHECK_FALSE(wrong_handle);
  }

  void offer_flow() { host.add_ext(BH_EXT_HOST_FLOW, &flow_); }
  void hold(bool on) {
    static_cast<const bh_flow *>(plugin->get_ext(BH_EXT_FLOW))
        ->hold_input(plugin.get(), the_session, on ? 1 : 0);
  }
  void begin() { begin(in_[0], out_[1]); }
  // Starts the plugin with a host that keeps sessions. `carried` is the state from the previous
  // process.
  void begin_carried() {
    if (!std::exchange(carries, true)) host.add_ext(BH_EXT_HOST_RESUME, &resume_);
    begin();
  }
  // Simulates a crash: the plugin stops without cleanup, and the descriptors stay open.
  void crash() {
    const auto note = carried.note;
    const std::string unread = kept;
    const int in = ::fcntl(in_[0], F_GETFL), out = ::fcntl(out_[1], F_GETFL);
    writer_lost();
    stop();
    ::fcntl(in_[0], F_SETFL, in);
    ::fcntl(out_[1], F_SETFL, out);
    carried.note = note;
    kept = unread;
    settled.clear();
  }
  void begin(int in, int out) {
    plugin = std::make_unique<TransportStdio>(host.host());
    const std::string json =
        "{\"in_fd\":" + std::to_string(in) + ",\"out_fd\":" + std::to_string(out) + "}";
    bh_error error = bh::make_error();
    REQUIRE(plugin->configure(bh::str(json), &error) == BH_OK);
    REQUIRE(plugin->start(&error) == BH_OK);
    REQUIRE(plugin->listen(&error) == BH_OK);
    host.turn(0);
  }
  void stop() {
    if (plugin) plugin->stop();
    plugin.reset();
    host.forget();
  }

  void client_writes(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::write(in_[1], text.data(), std::min<std::size_t>(text.size(), 65'536));
      REQUIRE(n > 0);
      text.remove_prefix(static_cast<std::size_t>(n));
      host.turn(0);
    }
  }
  // Returns all available output.
  std::string client_reads() {
    char piece[65'536];
    const ssize_t n = ::read(out_[0], piece, sizeof piece);
    return n > 0 ? std::string(piece, static_cast<std::size_t>(n)) : std::string();
  }
  std::string client_reads_line() {
    std::string all;
    host.run_until(
        [&] {
          all += client_reads();
          return all.ends_with('\n');
        },
        10'000);
    return all;
  }
  bh_status send(std::vector<std::string_view> texts, bh_session session = the_session) {
    std::vector<bh_str> parts;
    for (const std::string_view t : texts) parts.push_back(bh::str(t));
    bh_outgoing message{};
    message.size = sizeof message;
    message.kind = BH_OUT_ANSWER;
    message.session = session;
    message.stream = last_stream;
    message.parts = parts.data();
    message.part_count = static_cast<std::uint32_t>(parts.size());
    return plugin->send(message);
  }
  void close_client_input() { shut(&in_[1]); }
  void close_client_output() { shut(&out_[0]); }
  int in() const { return in_[0]; }
  int out() const { return out_[1]; }

  bh_limits limits;
  bh::testing::FakeHost host;
  std::unique_ptr<TransportStdio> plugin;
  std::function<void(const std::string &)> on_deliver;
  std::vector<std::string> delivered;
  std::vector<std::uint32_t> closes, fulls;
  std::string transport, process_name;
  int finished = 0;
  bool refuse = false, wrong_handle = false, carries = false;
  std::uint64_t last_stream = 0;  // stream of the last delivered message
  bh_carried carried{};
  std::vector<std::uint64_t> settled;
  std::string kept;  // input that was read but not delivered

 private:
  static Fixture &get(void *ctx) {
    return *static_cast<Fixture *>(bh::testing::FakeHost::self(ctx).user);
  }
  static void shut(int *fd) {
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
  }
  // Stops the plugin, and discards the queued output that stop() would otherwise write to the
  // client.
  void writer_lost() {
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    const int real = ::dup(out_[1]);
    ::dup2(null, out_[1]);
    plugin->stop();
    plugin.reset();
    ::dup2(real, out_[1]);
    ::close(null);
    ::close(real);
  }
  bh_host_transport table_{};
  bh_host_flow flow_{};
  bh_host_resume resume_{};
  std::string left;  // `kept` of the previous process
  int in_[2]{-1, -1}, out_[2]{-1, -1};
};

const std::vector<std::uint32_t> input_ended{BH_SESSION_INPUT_ENDED};
const std::vector<std::uint32_t> gone{BH_SESSION_GONE};

}  // namespace

TEST_CASE("missing host extensions and invalid numbers are rejected with a reason") {
  bh::testing::FakeHost host;
  TransportStdio plugin(host.host());
  bh_error error = bh::make_error();
  REQUIRE(plugin.configure(bh::str("{}"), &error) == BH_E_UNSUPPORTED);
  Fixture f;
  for (const char *json :
       {R"({"in_fd":-1})", R"({"in_fd":1.5})", R"({"out_fd":true})", "[]", "{"}) {
    TransportStdio other(f.host.host());
    CHECK(other.configure(bh::str(json), &error) == BH_E_INVALID);
  }
  TransportStdio closed(f.host.host());
  REQUIRE(closed.configure(bh::str(R"({"in_fd":987654})"), &error) == BH_OK);
  REQUIRE(closed.start(&error) == BH_E_INVALID);
  REQUIRE(bh::text(error) == "descriptor 987654 is not open");
}

TEST_CASE("there is one session, named after the parent process") {
  Fixture f;
  f.begin();
  REQUIRE(f.transport == "stdio");
  std::ifstream comm("/proc/" + std::to_string(::getppid()) + "/comm");
  std::string name;
  std::getline(comm, name);
  REQUIRE(f.process_name == name);
  REQUIRE(bh::view(f.plugin->endpoint()) == "stdio");
}

TEST_CASE("lines are delivered, and responses of one event loop iteration are written together") {
  Fixture f;
  f.on_deliver = [&](const std::string &text) {
    REQUIRE(f.send({"{\"a\":\n", text, "}"}) == BH_OK);
  };
  f.begin();
  f.client_writes("{1}\r\n\n{2}\n{3");
  f.host.run_until([&] { return f.delivered.size() == 2; }, 10'000);
  REQUIRE(f.client_reads() == "{\"a\": {1}}\n{\"a\": {2}}\n");
  f.client_writes("}\nnot JSON at all\n");
  f.host.run_until([&] { return f.delivered.size() == 4; }, 10'000);
  REQUIRE(f.delivered[2] == "{3}");
  REQUIRE(f.delivered[3] == "not JSON at all");  // the host responds with an error
}

TEST_CASE("a message for another session is rejected as stale") {
  Fixture f;
  f.begin();
  REQUIRE(f.send({"{}"}, 41) == BH_STALE);
  f.host.turn(0);
  REQUIRE(f.client_reads().empty());
}

TEST_CASE(
    "at the end of input, a last line without newline is delivered and responses are written") {
  Fixture f;
  f.begin();
  f.client_writes("{1}\n{last}");
  f.close_client_input();
  REQUIRE(f.host.run_until([&] { return f.finished == 1; }, 10'000));
  REQUIRE(f.delivered == std::vector<std::string>{"{1}", "{last}"});
  REQUIRE(f.closes == input_ended);
  REQUIRE(f.send({"{answer}"}) == BH_OK);
  REQUIRE(f.client_reads_line() == "{answer}\n");
  REQUIRE(f.finished == 1);
}

TEST_CASE("a disconnected client is detected without writing and ends the session once") {
  Fixture f;
  const bool eof_first = GENERATE(false, true);
  f.begin();
  if (eof_first) {
    f.close_client_input();
    REQUIRE(f.host.run_until([&] { return f.finished == 1; }, 10'000));
    f.closes.clear();
  }
  f.close_client_output();
  REQUIRE(f.host.run_until([&] { return !f.closes.empty(); }, 10'000));
  REQUIRE(f.closes == gone);
  REQUIRE(f.finished == 1);
  REQUIRE(f.send({"{}"}) == BH_STALE);
}

TEST_CASE("writing to a disconnected client ends the session, not the program") {
  Fixture f;
  f.begin();
  f.close_client_output();
  REQUIRE(f.send({"{" + std::string(100'000, 'x') + "}"}) == BH_OK);
  f.host.turn(0);
  REQUIRE(f.closes == gone);
  REQUIRE(f.finished == 1);
}

TEST_CASE("a message over the limit is skipped with an error response, and the next is delivered") {
  bh_limits limits = bh::testing::limits();
  limits.message_bytes = 100'000;
  Fixture f(limits);
  f.begin();
  f.client_writes("{\"id\":1," + std::string(300'000, 'x') + "}\n{2}\n");
  REQUIRE(f.host.run_until([&] { return f.delivered.size() == 1; }, 10'000));
  REQUIRE(f.delivered[0] == "{2}");
  REQUIRE(f.client_reads_line() ==
          R"({"jsonrpc":"2.0","error":{"code":-32600,"message":)"
          "\"message too large: more than 100000 bytes (limits.message_bytes)\"}}"
          "\n");
}

TEST_CASE("large messages are transferred in both directions") {
  bh_limits limits = bh::testing::limits();
  limits.write_queue_bytes = 8u << 20;
  Fixture f(limits);
  const std::string big = "{" + std::string(2'000'000, 'y') + "}";
  f.on_deliver = [&](const std::string &text) { REQUIRE(f.send({"[", text, "]"}) == BH_OK); };
  f.begin();
  f.client_writes(big + "\n");
  REQUIRE(f.host.run_until([&] { return f.delivered.size() == 1; }, 10'000));
  REQUIRE(f.delivered[0] == big);
  REQUIRE(f.client_reads_line() == "[" + big + "]\n");
}

TEST_CASE("a client that reads nothing loses its session after the stall time") {
  bh_limits limits = bh::testing::limits();
  limits.write_stall_ms = 50;
  Fixture f(limits);
  f.begin();
  const std::string text = "{" + std::string(50'000, 'x') + "}";
  for (int i = 0; i < 4; ++i) REQUIRE(f.send({text}) == BH_OK);
  REQUIRE(f.host.run_until([&] { return !f.closes.empty(); }, 10'000));
  REQUIRE(f.closes == gone);
  REQUIRE(f.finished == 1);
  REQUIRE(f.host.logged("does not read"));
}

TEST_CASE("queued output for a slow client is limited") {
  bh_limits limits = bh::testing::limits();
  limits.write_queue_bytes = 200'000;
  Fixture f(limits);
  f.begin();
  const std::string text = "{" + std::string(50'000, 'x') + "}";
  bh_status status = BH_OK;
  int sent = 0;
  for (; sent < 100 && status == BH_OK; ++sent) status = f.send({text});
  REQUIRE(status == BH_E_LIMIT);
  REQUIRE(sent < 100);
  REQUIRE(f.closes.empty());  // not reported inside send()
  REQUIRE(f.send({text}) == BH_STALE);
  f.host.turn(0);
  REQUIRE(f.closes == gone);
  REQUIRE(f.finished == 1);
}

TEST_CASE("stop() writes queued output and restores the descriptor flags") {
  Fixture f;
  f.begin();
  REQUIRE((::fcntl(f.in(), F_GETFL) & O_NONBLOCK) != 0);
  REQUIRE((::fcntl(f.out(), F_GETFL) & O_NONBLOCK) != 0);
  REQUIRE(f.send({"{goodbye}"}) == BH_OK);
  f.stop();
  REQUIRE(f.client_reads() == "{goodbye}\n");
  REQUIRE((::fcntl(f.in(), F_GETFL) & O_NONBLOCK) == 0);
  REQUIRE((::fcntl(f.out(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("queued output is written after the host ends the session") {
  Fixture f;
  f.begin();
  REQUIRE(f.send({"{1}"}) == BH_OK);
  f.plugin->session_ended(the_session, bh::str("shutdown"));
  REQUIRE(f.finished == 1);
  REQUIRE(f.closes.empty());
  REQUIRE(f.send({"{2}"}) == BH_STALE);
  REQUIRE(f.client_reads_line() == "{1}\n");
  f.client_writes("{late}\n");
  REQUIRE(f.delivered.empty());
}

TEST_CASE("if no session can be opened, the host is notified") {
  Fixture f;
  f.refuse = true;
  f.begin();
  REQUIRE(f.finished == 1);
  REQUIRE(f.closes.empty());
  REQUIRE(f.host.logged("too many sessions"));
}

TEST_CASE("regular files and /dev/null can be used as input and output") {
  Fixture f;
  const auto *store = bh::Host(f.host.host()).ext<bh_host_store>(BH_EXT_HOST_STORE);
  const std::string folder(bh::view(store->folder(&f.host)));
  std::string requests;
  for (int i = 0; i < 20'000; ++i) requests += "{" + std::to_string(i) + " some words}\n";
  std::ofstream(folder + "/in") << requests;
  const bool null = GENERATE(false, true);
  const int in = ::open(null ? "/dev/null" : (folder + "/in").c_str(), O_RDONLY | O_CLOEXEC);
  const int out = ::open((folder + "/out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  f.on_deliver = [&](const std::string &text) { REQUIRE(f.send({text}) == BH_OK); };
  f.begin(in, out);
  REQUIRE(f.host.run_until([&] { return f.finished == 1; }, 10'000));
  REQUIRE(f.closes == input_ended);
  f.stop();
  std::ifstream file(folder + "/out");
  const std::string answers((std::istreambuf_iterator<char>(file)), {});
  REQUIRE(answers == (null ? "" : requests));
  ::close(in);
  ::close(out);
}

TEST_CASE("one socket can be used as input and output") {
  Fixture f;
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  f.on_deliver = [&](const std::string &text) { REQUIRE(f.send({text}) == BH_OK); };
  f.begin(ends[0], ends[0]);
  REQUIRE(::write(ends[1], "{1}\n", 4) == 4);
  REQUIRE(f.host.run_until([&] { return f.delivered.size() == 1; }, 10'000));
  char answer[16];
  REQUIRE(::read(ends[1], answer, sizeof answer) == 4);
  ::shutdown(ends[1], SHUT_WR);
  REQUIRE(f.host.run_until([&] { return f.finished == 1; }, 10'000));
  REQUIRE(f.closes == input_ended);
  f.stop();
  REQUIRE((::fcntl(ends[0], F_GETFL) & O_NONBLOCK) == 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("a truncated process name is completed from the command line") {
  using transport_stdio::whole_name;
  using namespace std::string_view_literals;
  CHECK(whole_name("claude\n", "node\0/x/claude\0"sv) == "claude");
  CHECK(whole_name("my agent\tx\n", "sh\0"sv) == "my agent\tx");
  CHECK(whole_name("a-very-long-nam\n", "/opt/a-very-long-name-indeed\0-x\0"sv) ==
        "a-very-long-name-indeed");
  CHECK(whole_name("a-very-long-nam\n", "a-very-long-name\0/x/y\0"sv) == "a-very-long-name");
  CHECK(whole_name("a-very-long-nam\n", "/usr/bin/python3\0"sv) == "a-very-long-nam");
  // The kernel truncates at 15 bytes, possibly in the middle of a character.
  CHECK(whole_name("a\u20AC\u20AC\u20AC\u20AC\xE2\x82\n", "/usr/bin/python3\0"sv) ==
        "a\u20AC\u20AC\u20AC\u20AC");
  CHECK(whole_name("aaa\u20AC\u20AC\u20AC\u20AC\n", "/usr/bin/python3\0"sv) ==
        "aaa\u20AC\u20AC\u20AC\u20AC");
  CHECK(whole_name("", "").empty());
}

TEST_CASE("with flow control, the host is notified when output blocks and when it is written") {
  bh_limits limits = bh::testing::limits();
  limits.write_queue_bytes = 8u << 20;
  limits.write_stall_ms = 20;
  Fixture f(limits);
  f.offer_flow();
  f.begin();
  const std::string big = "{" + std::string(2'000'000, 'x') + "}";
  REQUIRE(f.send({big}) == BH_OK);
  REQUIRE(f.fulls == std::vector<std::uint32_t>{1});
  f.host.run_for(100);  // several times write_stall_ms
  REQUIRE(f.closes.empty());
  std::string taken;
  REQUIRE(f.host.run_until(
      [&] {
        taken += f.client_reads();
        return f.fulls.size() == 2;
      },
      10'000));
  REQUIRE(f.fulls[1] == 0);
  while (taken.size() <= big.size()) taken += f.client_reads();
  REQUIRE(taken == big + "\n");
}

TEST_CASE("even with flow control, the time-out applies after the end of the input") {
  bh_limits limits = bh::testing::limits();
  limits.write_queue_bytes = 8u << 20;
  limits.write_stall_ms = 20;
  Fixture f(limits);
  f.offer_flow();
  f.begin();
  REQUIRE(f.send({std::string(2'000'000, 'x')}) == BH_OK);
  f.close_client_input();
  REQUIRE(f.host.run_until([&] { return f.closes.size() == 2; }, 10'000));
  REQUIRE(f.closes == std::vector<std::uint32_t>{BH_SESSION_INPUT_ENDED, BH_SESSION_GONE});
}

TEST_CASE(
    "held input is neither read nor delivered; after the hold, all lines and the end of input "
    "arrive in order") {
  Fixture f;
  f.on_deliver = [&](const std::string &text) { f.hold(text == "{2}"); };
  SECTION("a pipe") {
    f.begin();
    f.client_writes("{1}\n{2}\n{3}\n");
    REQUIRE(f.host.run_until([&] { return f.delivered.size() == 2; }, 10'000));
    f.client_writes("{4}\n");
    f.close_client_input();
    for (int i = 0; i < 5; ++i) f.host.turn(0);
    REQUIRE(f.host.watches() ==
            1);  // only the output; a watch of the input would make the loop spin
    REQUIRE(f.delivered.size() == 2);
    f.hold(false);
  }
  SECTION("a file") {
    const auto *store = bh::Host(f.host.host()).ext<bh_host_store>(BH_EXT_HOST_STORE);
    const std::string file = std::string(bh::view(store->folder(&f.host))) + "/in";
    std::ofstream(file) << "{1}\n{2}\n{3}\n{4}\n";
    const int in = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    f.begin(in, f.out());
    REQUIRE(f.host.run_until([&] { return f.delivered.size() == 2; }, 10'000));
    for (int i = 0; i < 5; ++i) f.host.turn(0);
    REQUIRE(f.delivered.size() == 2);
    f.hold(false);
    REQUIRE(f.host.run_until([&] { return f.finished == 1; }, 10'000));
    f.stop();
    ::close(in);
  }
  REQUIRE((f.plugin == nullptr || f.host.run_until([&] { return f.finished == 1; }, 10'000)));
  REQUIRE(f.delivered == std::vector<std::string>{"{1}", "{2}", "{3}", "{4}"});
  REQUIRE(f.closes == input_ended);
}

TEST_CASE("a client that disconnects while its input is held is detected") {
  Fixture f;
  f.begin();
  f.hold(true);
  f.close_client_output();
  REQUIRE(f.host.run_until([&] { return f.closes == gone; }, 10'000));
}

// ---- successive processes -----------------------------------------------------------------------

TEST_CASE("each message has a stream number and is settled when its response is written") {
  Fixture f;
  f.carried.last_stream = 40;
  f.begin_carried();
  f.client_writes("{1}\n{2}\n");
  REQUIRE(f.host.run_until([&] { return f.delivered.size() == 2; }, 10'000));
  CHECK(f.last_stream == 42);
  CHECK(f.settled.empty());
  REQUIRE(f.send({"{a2}"}) == BH_OK);
  CHECK(f.settled.empty());  // flushed at the end of the event loop iteration
  REQUIRE(f.host.run_until([&] { return f.settled.size() == 1; }, 10'000));
  CHECK(f.settled.front() == 42);
  CHECK(f.client_reads() == "{a2}\n");
  f.last_stream = 41;
  REQUIRE(f.send({}) == BH_OK);  // cancelled
  CHECK(f.settled == std::vector<std::uint64_t>{42, 41});
}

TEST_CASE("the next process completes a partially read line") {
  Fixture f;
  f.begin_carried();
  f.client_writes("{1}\n{hal");
  REQUIRE(f.host.run_until([&] { return f.delivered.size() == 1; }, 10'000));
  f.crash();
  f.begin_carried();
  f.client_writes("f");
  REQUIRE(f.host.run_until([&] { return f.kept == "{half"; }, 10'000));
  f.crash();
  f.client_writes("}\n{2}\n");
  f.begin_carried();
  REQUIRE(f.host.run_until([&] { return f.delivered.size() == 3; }, 10'000));
  CHECK(f.delivered[1] == "{half}");
  CHECK(f.delivered[2] == "{2}");
  CHECK(f.kept.empty());
}

TEST_CASE(
    "after a crash, the next process delivers the lines that follow the line that caused it") {
  Fixture f;
  std::string then;
  f.on_deliver = [&](const std::string &text) {
    if (text == "{2}") then = f.kept;
  };
  f.begin_carried();
  f.client_writes("{1}\n{2}\n\r\n{3}\n{4");
  REQUIRE(f.host.run_until([&] { return f.delivered.size() == 3; }, 10'000));
  CHECK(then == "\r\n{3}\n{4");
  f.kept = then;
  f.delivered.clear();
  f.crash();
  f.client_writes("}\n");
  f.begin_carried();
  REQUIRE(f.host.run_until([&] { return f.delivered.size() == 2; }, 10'000));
  CHECK(f.delivered == std::vector<std::string>{"{3}", "{4}"});
}

TEST_CASE("if a partial line is too long to keep, the next process skips its remaining bytes") {
  Fixture f;
  f.begin_carried();
  f.client_writes("{1}\n{" + std::string(max_kept, 'x'));
  REQUIRE(f.host.run_until([&] { return f.delivered.size() == 1; }, 10'000));
  CHECK(f.kept.empty());
  f.client_writes(std::string(100, 'x'));
  f.crash();
  f.client_writes("xx");
  f.begin_carried();
  REQUIRE(f.host.run_until([&] { return f.kept.empty(); }, 10'000));
  f.crash();
  f.client_writes("}\n{2}\n{3");
  f.begin_carried();
  REQUIRE(f.host.run_until([&] { return f.delivered.size() == 2; }, 10'000));
  CHECK(f.delivered.back() == "{2}");
  CHECK(f.kept == "{3");
  f.client_writes("}\n{" + std::string(max_kept, 'y') + "}\n");
  REQUIRE(f.host.run_until([&] { return f.delivered.size() == 4; }, 10'000));
  f.crash();
  f.client_writes("{4}\n");
  f.begin_carried();
  REQUIRE(f.host.run_until([&] { return f.delivered.size() == 5; }, 10'000));
  CHECK(f.delivered.back() == "{4}");
}

TEST_CASE("the next process terminates a partially written line, but not a complete line") {
  Fixture f;
  f.begin_carried();
  f.client_writes("{1}\n");
  REQUIRE(f.host.run_until([&] { return f.delivered.size() == 1; }, 10'000));
  const std::string large(4u << 20, 'x');
  REQUIRE(f.send({large}) == BH_OK);  // exceeds the pipe's capacity
  CHECK(f.settled.empty());
  f.crash();
  f.carried.last_stream = f.last_stream;
  f.begin_carried();
  const std::string half = f.client_reads_line();
  CHECK(half.size() > 1);
  CHECK(half.size() < large.size());
  CHECK(half.find_first_not_of('x') == half.size() - 1);
  f.client_writes("{2}\n");
  REQUIRE(f.host.run_until([&] { return f.delivered.size() == 2; }, 10'000));
  REQUIRE(f.send({"{a2}"}) == BH_OK);
  REQUIRE(f.host.run_until([&] { return f.settled.size() == 1; }, 10'000));
  CHECK(f.client_reads() == "{a2}\n");
  f.crash();
  f.begin_carried();
  f.host.turn(0);
  CHECK(f.client_reads().empty());
}

TEST_CASE("the last process restores the original descriptor flags") {
  Fixture f;
  REQUIRE((::fcntl(f.in(), F_GETFL) & O_NONBLOCK) == 0);
  f.begin_carried();
  f.crash();
  REQUIRE((::fcntl(f.in(), F_GETFL) & O_NONBLOCK) != 0);
  f.begin_carried();
  f.stop();
  CHECK((::fcntl(f.in(), F_GETFL) & O_NONBLOCK) == 0);
}
