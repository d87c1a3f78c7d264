#include "transport-aggregator/transport_aggregator.hpp"

#include <bulkhead/abi/ext/tools.h>
#include <fcntl.h>
#include <unistd.h>

#include <bulkhead/testing/fake_host.hpp>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using bh::aggregator::Codec;
using transport_aggregator::TransportAggregator;

namespace {

constexpr bh_session the_session = 42;
constexpr std::string_view definitions = R"([{"name":"a","command":"x"}])";

// A fake host and the client's ends of two pipes.
class Fixture {
 public:
  Fixture() {
    make_transport();
    make_control();
    host.user = this;
    host.add_ext(BH_EXT_HOST_TRANSPORT, &transport_);
    host.add_ext(BH_EXT_HOST_CONTROL, &control_);
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
  }

  // If `configured` is true, the configuration selects the codec. Otherwise, the first byte selects
  // it.
  void begin(bool configured = false) {
    plugin = std::make_unique<TransportAggregator>(host.host());
    const std::string json = "{\"in_fd\":" + std::to_string(in_[0]) +
                             ",\"out_fd\":" + std::to_string(out_[1]) + ",\"codec\":\"" +
                             (!configured              ? "auto"
                              : codec == Codec::ndjson ? "ndjson"
                                                       : "msgpack") +
                             "\"}";
    bh_error error = bh::make_error();
    REQUIRE(plugin->configure(bh::str(json), &error) == BH_OK);
    REQUIRE(plugin->start(&error) == BH_OK);
    REQUIRE(plugin->listen(&error) == BH_OK);
    host.turn(0);
  }
  // Sends the first message and completes the replacement of the servers.
  void serve(bool configured = false) {
    begin(configured);
    client_says(definitions);
    settle();
  }
  void stop() {
    if (plugin) plugin->stop();
    plugin.reset();
    host.forget();
  }

  void client_writes(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(in_[1], bytes.data(), std::min<std::size_t>(bytes.size(), 32'768));
      REQUIRE(n > 0);
      bytes.remove_prefix(static_cast<std::size_t>(n));
      host.turn(0);
    }
  }
  void client_says(std::string_view text) {
    std::string bytes;
    REQUIRE(bh::aggregator::append_message(codec, text, &bytes) == nullptr);
    client_writes(bytes);
    host.turn(0);
  }
  // Returns all available replies as JSON.
  std::vector<std::string> replies() {
    host.turn(0);
    char piece[65'536];
    std::vector<std::string> out;
    for (;;) {
      const ssize_t n = ::read(out_[0], piece, sizeof piece);
      if (n <= 0) return out;
      cutter_.add({piece, static_cast<std::size_t>(n)});
      while (cutter_.next() == bh::aggregator::FrameCutter::Next::message) {
        std::string scratch;
        std::string_view text;
        REQUIRE(bh::aggregator::decode_message(codec, cutter_.message(), &scratch, &text) ==
                nullptr);
        out.emplace_back(text);
      }
      host.turn(0);
    }
  }
  using Texts = std::vector<std::string>;

  // Completes the oldest pending replacement of the servers.
  void settle(std::string_view report = "{}") {
    REQUIRE_FALSE(replacements.empty());
    const auto [done, arg] = replacements.front();
    replacements.erase(replacements.begin());
    done(arg, bh::str(report));
    host.turn(0);
  }
  void answer(std::uint64_t stream, std::string_view rest) {
    const std::string head = "{\"jsonrpc\":\"2.0\",\"id\":" + std::to_string(stream);
    const bh_str parts[] = {bh::str(head), bh::str(rest)};
    bh_outgoing message{};
    message.size = sizeof message;
    message.kind = BH_OUT_ANSWER;
    message.session = the_session;
    message.stream = stream;
    message.parts = parts;
    message.part_count = 2;
    CHECK(plugin->send(message) == BH_OK);
  }
  void close_client_input() { shut(&in_[1]); }
  void close_client_output() { shut(&out_[0]); }

  Codec codec = Codec::ndjson;
  bh_limits limits = bh::testing::limits();
  bh::testing::FakeHost host;
  std::unique_ptr<TransportAggregator> plugin;
  std::vector<std::pair<std::uint64_t, std::string>> delivered;  // without the handshake
  std::vector<std::string> defined;
  std::vector<std::pair<bh_control_done, void *>> replacements;
  std::function<bh_status(std::uint32_t kind, std::string *out)> on_list;
  std::vector<std::uint32_t> closes;
  bh_status replace_status = BH_PENDING;
  bool refuse_handshake = false;
  int finished = 0;

 private:
  static Fixture &get(void *ctx) {
    return *static_cast<Fixture *>(bh::testing::FakeHost::self(ctx).user);
  }
  static void shut(int *fd) {
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
  }

  void make_transport() {
    transport_.size = sizeof transport_;
    transport_.limits = &limits;
    transport_.session_open = [](void *, const bh_peer *, bh_session *out, bh_error *) {
      *out = the_session;
      return bh_status{BH_OK};
    };
    transport_.deliver = [](void *c, const bh_incoming *message, bh_delivery *out) -> bh_status {
      Fixture &f = get(c);
      const std::uint64_t stream = message->stream;
      out->kind = BH_DELIVERED_ANSWER;
      if (stream == 1) {
        f.answer(1, f.refuse_handshake ? ",\"error\":{\"code\":-1,\"message\":\"no\"}}"
                                       : ",\"result\":{}}");
      } else if (stream != 0) {
        f.delivered.emplace_back(stream, bh::view(message->message));
      }
      return BH_OK;
    };
    transport_.session_close = [](void *c, bh_session, std::uint32_t how) {
      get(c).closes.push_back(how);
    };
    transport_.finished = [](void *c) { ++get(c).finished; };
  }
  void make_control() {
    control_.size = sizeof control_;
    control_.replace_servers = [](void *c, bh_str text, std::uint64_t, bh_control_done done,
                                  void *arg, bh_error *error) -> bh_status {
      Fixture &f = get(c);
      f.defined.emplace_back(bh::view(text));
      if (f.replace_status != BH_PENDING) return bh::fail(error, f.replace_status, "refused so");
      f.replacements.emplace_back(done, arg);
      return BH_PENDING;
    };
    control_.list_servers = [](void *c, bh_buf *out, bh_error *error) {
      return get(c).listed(0, out, error);
    };
    control_.list_items = [](void *c, bh_session session, std::uint32_t kind, bh_buf *out,
                             bh_error *error) -> bh_status {
      if (session != the_session) return bh::fail(error, BH_STALE, "no such session");
      return get(c).listed(kind, out, error);
    };
  }
  bh_status listed(std::uint32_t kind, bh_buf *out, bh_error *error) {
    std::string text = "[]";
    const bh_status status = on_list ? on_list(kind, &text) : bh_status{BH_OK};
    if (status < 0) return bh::fail(error, status, "cannot list");
    if (status == BH_OK) *out = bh::buf(std::move(text));
    return status;
  }

  bh_host_transport transport_{};
  bh_host_control control_{};
  bh::aggregator::FrameCutter cutter_{Codec::automatic};
  int in_[2]{-1, -1}, out_[2]{-1, -1};
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a missing grant and an invalid configuration are reported") {
  Fixture f;
  bh_error error = bh::make_error();
  TransportAggregator wrong(f.host.host());
  CHECK(wrong.configure(bh::str(R"({"codec":"xml"})"), &error) == BH_E_INVALID);
  f.host.add_ext(BH_EXT_HOST_CONTROL, nullptr);
  TransportAggregator none(f.host.host());
  CHECK(none.configure(bh::str("{}"), &error) == BH_E_DENIED);
  CHECK(bh::text(error).find("grants") != std::string_view::npos);
}

TEST_CASE(
    "A04 the first message is passed to the host; requests wait until the servers have responded") {
  Fixture f;
  f.begin();
  f.client_says(definitions);
  REQUIRE(f.defined == Texts{std::string(definitions)});
  f.client_says(R"({"id":5,"method":"list_tools"})");
  f.client_says(R"({"id":6,"method":"call_tool","params":{"name":"a__t","arguments":{"x":1}}})");
  CHECK(f.replies().empty());
  CHECK(f.delivered.empty());
  f.settle();
  CHECK(f.replies() == Texts{R"({"id":5,"tools":[]})"});
  REQUIRE(f.delivered.size() == 1);
  CHECK(f.delivered[0].second.ends_with(
      R"("method":"tools/call","params":{"name":"a__t","arguments":{"x":1}}})"));
}

TEST_CASE("A04 a first message that is not an array is rejected and ends the session") {
  const char *first = GENERATE(R"({"id":5,"method":"list_tools"})", "garbage", "7");
  Fixture f;
  f.begin();
  f.client_writes(std::string(first) + "\n");
  f.host.turn(0);
  CHECK(f.finished == 1);
  CHECK(f.host.logged("the first message is not the array of server definitions"));
  const Texts replies = f.replies();
  if (first[0] == '{') {
    REQUIRE(replies.size() == 1);
    CHECK(replies[0].starts_with(R"({"id":5,"error":)"));
  }
}

TEST_CASE("A05 A06 each codec is recognized by its first byte and used for replies") {
  Fixture f;
  f.codec = GENERATE(Codec::ndjson, Codec::msgpack);
  f.serve(GENERATE(false, true));
  f.client_says(R"({"id":2,"method":"list_tools"})");
  CHECK(f.replies() == Texts{R"({"id":2,"tools":[]})"});
}

TEST_CASE("A05 a line that is too long is logged and skipped, and the next line is answered") {
  Fixture f;
  f.serve();
  f.client_writes(std::string(1'048'577, 'x') + "\n");
  f.client_says(R"({"id":2,"method":"list_tools"})");
  CHECK(f.replies() == Texts{R"({"id":2,"tools":[]})"});
  CHECK(f.host.logged("a message is skipped: it is longer than 1 MiB"));
}

TEST_CASE("A06 a length above the limit ends the input, and in-flight requests are answered") {
  Fixture f;
  f.codec = Codec::msgpack;
  f.serve();
  f.client_says(R"({"id":3,"method":"call_tool","params":{"name":"a__t"}})");
  f.client_writes(std::string("\x01\x00\x00\x01", 4));
  f.host.turn(0);
  CHECK(f.host.logged("a message declares a length of more than 16 MiB"));
  CHECK(f.finished == 0);
  REQUIRE(f.delivered.size() == 1);
  f.answer(f.delivered[0].first, ",\"result\":{}}");
  CHECK(f.replies() == Texts{R"({"id":3,"result":{}})"});
  CHECK(f.finished == 1);
}

TEST_CASE("A07 A08 A09 lists come from the host, in the protocol's format") {
  Fixture f;
  f.codec = GENERATE(Codec::ndjson, Codec::msgpack);
  f.serve();
  f.on_list = [](std::uint32_t kind, std::string *out) -> bh_status {
    if (kind == 0) *out = R"([{"name":"a","is_stdio":true,"connected":true}])";
    if (kind == BH_LIST_TOOLS) {
      *out = R"([{"server":"a","name":"a__t","original_name":"t","item":{"name":"t"}}])";
    }
    if (kind == BH_LIST_PROMPTS) return BH_E_UNAVAILABLE;
    return BH_OK;
  };
  for (const char *method : {"list_servers", "list_tools", "list_resources", "list_prompts"}) {
    f.client_says(std::string(R"({"id":1,"method":")") + method + "\"}");
  }
  const Texts replies = f.replies();
  REQUIRE(replies.size() == 4);
  CHECK(replies[0] == R"({"id":1,"servers":[{"name":"a","url":null,"enabled":null,"source":null,)"
                      R"("is_stdio":true,"connected":true,"tool_count":null,"resource_count":null,)"
                      R"("prompt_count":null}]})");
  CHECK(replies[1] ==
        R"({"id":1,"tools":[{"namespaced_name":"a__t","original_name":"t","description":null,)"
        R"("input_schema":null,"server_name":"a","annotations":null}]})");
  CHECK(replies[2] == R"({"id":1,"resources":[]})");
  CHECK(replies[3] == R"({"id":1,"error":"cannot list"})");
}

TEST_CASE("a list that is not available yet is requested again") {
  Fixture f;
  f.serve();
  int asked = 0;
  f.on_list = [&](std::uint32_t, std::string *) -> bh_status {
    return ++asked < 3 ? BH_WOULD_BLOCK : BH_OK;
  };
  f.client_says(R"({"id":1,"method":"list_tools"})");
  CHECK(f.replies().empty());
  REQUIRE(f.host.run_until([&] { return asked == 3; }, 10'000));
  CHECK(f.replies() == Texts{R"({"id":1,"tools":[]})"});
}

TEST_CASE("A10 A11 calls, resources and prompts are sent as MCP requests, with unchanged text") {
  Fixture f;
  f.serve();
  f.client_says(
      R"({"id":1,"method":"call_tool","params":{"name":"a__\u0074","arguments":{ "n" : 1.0e0 }}})");
  f.client_says(R"({"id":2,"method":"read_resource","params":{"uri":"capsem://a/x://y/z"}})");
  f.client_says(R"({"id":3,"method":"get_prompt","params":{"name":"a__p","arguments":{"x":"y"}}})");
  f.client_says(R"({"id":4,"method":"call_tool","params":{"name":"a__t","arguments":[]}})");
  REQUIRE(f.delivered.size() == 4);
  const auto params = [&](std::size_t i) {
    const std::string &text = f.delivered[i].second;
    CHECK(bh::json::valid(text));
    CHECK(bh::json::member(text, "id") == std::to_string(f.delivered[i].first));
    return std::string(bh::json::unquote(bh::json::member(text, "method"))) + " " +
           std::string(bh::json::member(text, "params"));
  };
  CHECK(params(0) == R"(tools/call {"name":"a__\u0074","arguments":{ "n" : 1.0e0 }})");
  CHECK(params(1) == R"(resources/read {"uri":"capsem://a/x://y/z"})");
  CHECK(params(2) == R"(prompts/get {"name":"a__p","arguments":{"x":"y"}})");
  CHECK(params(3) == R"(tools/call {"name":"a__t"})");
}

TEST_CASE("A15 replies are sent in order of arrival, each with its id") {
  Fixture f;
  f.codec = GENERATE(Codec::ndjson, Codec::msgpack);
  f.serve();
  for (int i = 0; i < 100; ++i) {
    f.client_says("{\"id\":" + std::to_string(1000 + i) +
                  R"(,"method":"call_tool","params":{"name":"a__t"}})");
  }
  REQUIRE(f.delivered.size() == 100);
  Texts expected;
  for (int i = 99; i >= 0; --i) {
    const auto at = static_cast<std::size_t>((i * 37) % 100);
    f.answer(f.delivered[at].first, ",\"result\":{\"n\":" + std::to_string(at) + "}}");
    expected.push_back("{\"id\":" + std::to_string(1000 + at) +
                       ",\"result\":{\"n\":" + std::to_string(at) + "}}");
  }
  CHECK(f.replies() == expected);
}

TEST_CASE("errors of the host are returned as error texts") {
  Fixture f;
  f.serve();
  f.client_says(R"({"id":1,"method":"call_tool","params":{"name":"a__t"}})");
  f.answer(f.delivered[0].first,
           R"(,"error":{"code":-32603,"message":"server \"a\" is not connected"}})");
  CHECK(f.replies() == Texts{R"({"id":1,"error":"server \"a\" is not connected"})"});
}

TEST_CASE("A12 refresh is answered after the host has replaced or rejected the servers") {
  Fixture f;
  f.serve();
  f.client_says(R"({"id":1,"method":"refresh","params":{"servers":[{"name":"b","url":""}]}})");
  CHECK(f.defined.back() == R"([{"name":"b"}])");
  f.client_says(R"({"id":2,"method":"list_servers"})");
  CHECK(f.replies() == Texts{R"({"id":2,"servers":[]})"});
  f.settle(R"({"refused":[{"name":"b","reason":"requires a \"command\" or a \"url\""}]})");
  CHECK(f.replies() == Texts{R"({"id":1,"ok":true})"});
  CHECK(f.host.logged(R"(server "b" is skipped: requires a "command" or a "url")"));
  f.replace_status = BH_E_LIMIT;
  f.client_says(R"({"id":3,"method":"refresh","params":{"servers":[]}})");
  CHECK(f.replies() == Texts{R"({"id":3,"error":"refused so"})"});
}

TEST_CASE("A13 shutdown is answered immediately, even while servers connect; other requests fail") {
  Fixture f;
  f.begin();
  f.client_says(definitions);
  f.client_says(R"({"id":1,"method":"list_tools"})");
  f.client_says(R"({"id":2,"method":"shutdown"})");
  CHECK(f.replies() ==
        Texts{R"({"id":2,"ok":true})", R"({"id":1,"error":"the aggregator is shutting down"})"});
  CHECK(f.finished == 1);
  CHECK(f.closes == std::vector<std::uint32_t>{BH_SESSION_GONE});
}

TEST_CASE("A14 at the end of input, the session ends after in-flight requests are answered") {
  Fixture f;
  f.serve();
  const bool busy = GENERATE(false, true);
  if (busy) f.client_says(R"({"id":1,"method":"call_tool","params":{"name":"a__t"}})");
  f.close_client_input();
  f.host.turn(0);
  f.host.turn(0);
  REQUIRE(f.finished == (busy ? 0 : 1));
  if (!busy) return;
  f.answer(f.delivered[0].first, ",\"result\":{}}");
  CHECK(f.replies() == Texts{R"({"id":1,"result":{}})"});
  CHECK(f.finished == 1);
}

TEST_CASE("A14 after the end of input, in-flight requests fail after a time limit") {
  Fixture f;
  f.serve();
  f.client_says(R"({"id":1,"method":"call_tool","params":{"name":"a__t"}})");
  f.client_says(R"({"id":2,"method":"refresh","params":{"servers":[]}})");
  f.close_client_input();
  REQUIRE(f.host.run_until([&] { return f.finished == 1; }, 10'000));
  CHECK(f.replies() == Texts{R"({"id":1,"error":"the aggregator's input was closed"})",
                             R"({"id":2,"error":"the aggregator's input was closed"})"});
}

TEST_CASE("A21 garbage between two requests is skipped and logged once") {
  Fixture f;
  f.codec = GENERATE(Codec::ndjson, Codec::msgpack);
  f.serve();
  f.client_says(R"({"id":1,"method":"list_tools"})");
  f.client_writes(f.codec == Codec::ndjson ? std::string("%%% garbage\n")
                                           : std::string("\x00\x00\x00\x03\xc1zz", 7));
  f.client_says(R"({"id":2,"method":"list_tools"})");
  f.client_says(R"({"id":3,"method":"dance"})");
  CHECK(f.replies() == Texts{R"({"id":1,"tools":[]})", R"({"id":2,"tools":[]})",
                             R"({"id":3,"error":"unknown method"})"});
  CHECK(f.host.logged("a message is skipped: "));
}

TEST_CASE("A22 a reply that the codec cannot encode is replaced with an error with the same id") {
  Fixture f;
  f.serve();
  f.client_says(R"({"id":9,"method":"call_tool","params":{"name":"a__t"}})");
  f.answer(f.delivered[0].first, ",\"result\":{\"t\":\"" + std::string(1'100'000, 'x') + "\"}}");
  CHECK(f.replies() ==
        Texts{R"({"id":9,"error":"the reply cannot be sent: it is larger than a line of 1 MiB"})"});
  f.client_says(R"({"id":10,"method":"list_tools"})");
  CHECK(f.replies() == Texts{R"({"id":10,"tools":[]})"});
}

TEST_CASE("the number of requests without a reply is limited") {
  Fixture f;
  f.serve();
  for (std::size_t i = 0; i < TransportAggregator::max_open; ++i) {
    f.client_says(R"({"id":1,"method":"call_tool","params":{"name":"a__t"}})");
  }
  CHECK(f.replies().empty());
  f.client_says(R"({"id":2,"method":"call_tool","params":{"name":"a__t"}})");
  const Texts replies = f.replies();
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].find("more than 4096 requests") != std::string::npos);
  CHECK(f.delivered.size() == TransportAggregator::max_open);
}

TEST_CASE("the total size of requests waiting for the first servers is limited") {
  Fixture f;
  f.limits.message_bytes = 1'000;
  f.begin();
  f.client_says(definitions);
  const std::string large(600, 'x');
  f.client_says(R"({"id":1,"method":"call_tool","params":{"name":")" + large + "\"}}");
  f.client_says(R"({"id":2,"method":"call_tool","params":{"name":")" + large + "\"}}");
  const Texts replies = f.replies();
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].starts_with(R"({"id":2,"error":"too many bytes of requests are queued)"));
}

TEST_CASE("a client that does not read is disconnected") {
  Fixture f;
  f.limits.write_queue_bytes = 300'000;
  f.serve();
  for (int i = 0; i < 8; ++i) {
    f.client_says(R"({"id":1,"method":"call_tool","params":{"name":"a__t"}})");
  }
  for (const auto &[stream, text] : std::vector(f.delivered)) {
    f.answer(stream, ",\"result\":\"" + std::string(100'000, 'x') + "\"}");
  }
  f.host.turn(0);
  CHECK(f.finished == 1);
  CHECK(f.closes == std::vector<std::uint32_t>{BH_SESSION_GONE});
  CHECK(f.host.logged("does not read its replies"));
}

TEST_CASE("a disconnected client is detected without writing") {
  Fixture f;
  f.serve();
  f.close_client_output();
  REQUIRE(f.host.run_until([&] { return f.finished == 1; }, 10'000));
}

TEST_CASE("the session ends if the host ends it or rejects the handshake") {
  Fixture f;
  f.refuse_handshake = GENERATE(false, true);
  f.begin();
  if (f.refuse_handshake) {
    f.host.turn(0);
    CHECK(f.host.logged("the handshake with the host failed"));
  } else {
    f.client_says(definitions);
    f.settle();
    f.client_says(R"({"id":1,"method":"call_tool","params":{"name":"a__t"}})");
    f.plugin->session_ended(the_session, bh::str("stopping"));
    f.host.turn(0);
    CHECK(f.replies() == Texts{R"({"id":1,"error":"the aggregator is stopping"})"});
  }
  CHECK(f.finished == 1);
}
