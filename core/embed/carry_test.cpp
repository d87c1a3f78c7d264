// Tests bh.host.resume/1 with two simulated processes that run one after the other. The first
// process's ledger is copied while the process is running, as if the process had been killed at
// that moment.
#define BH_STATIC_PLUGIN
#include <sys/mman.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <string>

#include "bulkhead/abi/ext/draft/resume.h"
#include "bulkhead/cpp/messages.hpp"
#include "bulkhead/cpp/tables.hpp"
#include "embed/fake_world.hpp"
#include "embed/seal.hpp"
#include "route/ledger.hpp"
#include "route/reopening.hpp"

using namespace bulkhead;

namespace {

struct TestTransport {
  const bh_host *host = nullptr;
  bh_session session = 0;
  bh_carried before{};
  std::vector<std::pair<std::uint64_t, std::string>> got;  // (stream, message)

  const bh_host_transport *transport() const {
    return static_cast<const bh_host_transport *>(host->get_ext(host->ctx, BH_EXT_HOST_TRANSPORT));
  }
  const bh_host_resume *resume() const {
    return static_cast<const bh_host_resume *>(host->get_ext(host->ctx, BH_EXT_HOST_RESUME));
  }
  static bh_peer peer() {
    bh_peer peer{};
    peer.size = sizeof peer;
    peer.transport = bh::str("test");
    return peer;
  }
  bh_status carry() {
    const bh_peer who = peer();
    before = {};
    return resume()->carry(host->ctx, &who, &session, &before, nullptr);
  }
  void send(std::uint64_t stream, const std::string &message) {
    bh_delivery delivery{};
    delivery.size = sizeof delivery;
    const bh_incoming incoming = bh::incoming(session, stream, message);
    transport()->deliver(host->ctx, &incoming, &delivery);
  }
  void request(std::uint64_t stream, const std::string &id, const std::string &method,
               const std::string &params) {
    send(stream, R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"(","params":)" +
                     params + "}");
  }
  void initialize(std::uint64_t stream) {
    request(stream, "\"i\"", "initialize",
            R"({"protocolVersion":"2025-06-18","capabilities":{"sampling":{}},"clientInfo":{)"
            R"("name":"t","version":"1"}})");
  }
  // ---- sessions identified by a sealed ID ----
  bh_session open() const {
    const bh_peer who = peer();
    bh_session out = 0;
    REQUIRE(transport()->session_open(host->ctx, &who, &out, nullptr) == BH_OK);
    return out;
  }
  // Starts a handshake and returns the sealed session ID.
  std::string open_sealed(const std::string &id) {
    session = open();
    initialize(1);
    bh_buf buf{};
    REQUIRE(resume()->seal(host->ctx, session, bh::str(id), &buf, nullptr) == BH_OK);
    return std::string(bh::Buf(buf).view());
  }
  bh_status reopen(const std::string &id, const std::string &sealed) {
    const bh_peer who = peer();
    return resume()->reopen(host->ctx, &who, bh::str(id), bh::str(sealed), &session, nullptr);
  }
  void close(std::uint32_t how) const { transport()->session_close(host->ctx, session, how); }

  std::size_t count(std::string_view text) const {
    std::size_t n = 0;
    for (const auto &[stream, message] : got) n += message.find(text) != std::string::npos ? 1 : 0;
    return n;
  }
};
TestTransport test_transport;

class TransportPlugin {
 public:
  static constexpr bh::Info info{.id = "seat",
                                 .name = "TestTransport",
                                 .version = "1",
                                 .vendor = "test",
                                 .config_schema = {},
                                 .provides = {BH_EXT_TRANSPORT}};
  explicit TransportPlugin(const bh_host *host) {
    test_transport = TestTransport{};
    test_transport.host = host;
  }
  bh_status configure(bh_str, bh_error *) { return BH_OK; }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {}
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TRANSPORT) ? bh::transport_table<TransportPlugin>() : nullptr;
  }
  bh_status listen(bh_error *) { return BH_OK; }
  void stop_accepting() {}
  bh_status send(const bh_outgoing &message) {
    std::string text;
    for (std::uint32_t i = 0; i < message.part_count; ++i) text += bh::view(message.parts[i]);
    test_transport.got.emplace_back(message.stream, text);
    return BH_OK;
  }
  void session_ended(bh_session, bh_str) {}
  bh_str endpoint() { return bh::str("seat"); }
};
BH_PLUGIN(TransportPlugin)

struct Life : World {
  OwnedFd memory;

  explicit Life(OwnedFd left, std::uint32_t epoch, bool keeps = true) : memory(std::move(left)) {
    up.capabilities["a"] =
        R"({"tools":{},"resources":{"subscribe":true},"logging":{},"prompts":{}})";
    PluginUse use;
    use.id = use.plugin = "seat";
    use.config_json = "{}";
    profile.transports = {use};
    HostOptions options;
    options.static_plugins = {{"fake-connector", bh_static_entry_FakeConnector},
                              {"seat", bh_static_entry_TransportPlugin}};
    options.sealing_key = std::string(Sealer::key_bytes, 'k');
    options.epoch = epoch;
    if (keeps) options.ledger = Ledger::open(memory.get());
    host = *Host::create(profile, std::move(options));
    REQUIRE(host->start().has_value());
  }
  void settle() {
    REQUIRE(turn_until([&] { return host->settled(); }));
    host->run_until([] { return false; }, 5);
  }
  // Returns a copy of the ledger, as a replacement process would receive it.
  OwnedFd leave() const {
    auto copy = Ledger::make();
    REQUIRE(copy);
    const auto size = static_cast<std::size_t>(::lseek(memory.get(), 0, SEEK_END));
    void *from = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, memory.get(), 0);
    void *to = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, copy->get(), 0);
    REQUIRE((from != MAP_FAILED && to != MAP_FAILED));
    std::memcpy(to, from, size);
    ::munmap(from, size);
    ::munmap(to, size);
    return std::move(*copy);
  }
  // Returns the first message with this method that server "a" received on its newest connection,
  // or an empty string.
  std::string sent(std::string_view method) {
    for (const std::string &text : up.lane("a").sent) {
      if (text.find(method) != std::string::npos) return text;
    }
    return {};
  }
  void answer(std::string_view method) {
    REQUIRE(turn_until([&] { return !sent(method).empty(); }));
    up.send("a",
            R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(sent(method)) + R"(,"result":{}})");
  }
};

OwnedFd nothing() {
  auto made = Ledger::make();
  REQUIRE(made);
  return std::move(*made);
}

constexpr auto uri = R"({"uri":"bulkhead://a/fake://x"})";

// Runs the first process. Its client has listed items, set a log level, subscribed to a resource,
// and started a call that is still in flight.
OwnedFd first_process() {
  Life life(nothing(), 1);
  REQUIRE(test_transport.carry() == BH_OK);
  CHECK(test_transport.before.restored == 0);
  CHECK(test_transport.before.note == 0);
  test_transport.initialize(1);
  test_transport.resume()->settled(test_transport.host->ctx, test_transport.session, 1);
  life.settle();
  test_transport.request(2, "2", "tools/list", "{}");
  test_transport.resume()->settled(test_transport.host->ctx, test_transport.session, 2);
  test_transport.request(3, "3", "logging/setLevel", R"({"level":"error"})");
  test_transport.resume()->settled(test_transport.host->ctx, test_transport.session, 3);
  test_transport.request(4, "4", "resources/subscribe", uri);
  life.answer("resources/subscribe");
  CHECK(test_transport.count("\"id\":4") == 1);
  test_transport.resume()->settled(test_transport.host->ctx, test_transport.session, 4);
  test_transport.request(5, "\"five\"", "tools/call", R"({"name":"a__x","arguments":{}})");
  test_transport.request(6, "6", "ping", "{}");  // processed, but the response is not sent
  test_transport.resume()->note(test_transport.host->ctx, test_transport.session, 77);
  return life.leave();
}

}  // namespace

TEST_CASE("a restored session resumes without a handshake, and its pending requests fail") {
  Life life(first_process(), 2);
  REQUIRE(test_transport.carry() == BH_OK);
  CHECK(test_transport.before.restored == 1);
  CHECK(test_transport.before.last_stream == 6);
  CHECK(test_transport.before.note == 77);
  CHECK(test_transport.got.empty());  // no message is sent before the transport knows the session
  life.settle();
  REQUIRE(life.turn_until([&] { return test_transport.count("was restarted") == 2; }));
  CHECK(test_transport.got[0].first == 5);
  CHECK(test_transport.got[0].second.find(R"("id":"five","error":{"code":-32603)") !=
        std::string::npos);
  CHECK(test_transport.got[1].first == 6);
  CHECK(test_transport.count("tools/list_changed") == 1);
  CHECK(test_transport.count("prompts/list_changed") == 0);  // the client never listed prompts
  // The gateway restores the subscriptions and the log level on the server.
  REQUIRE(life.turn_until([&] { return !life.sent("resources/subscribe").empty(); }));
  REQUIRE(life.turn_until([&] { return !life.sent("logging/setLevel").empty(); }));
  CHECK(life.sent("resources/subscribe").find("fake://x") != std::string::npos);
  CHECK(life.sent("logging/setLevel").find("error") != std::string::npos);
  CHECK(life.sent("tools/call").empty());
  const std::size_t before = test_transport.got.size();
  life.answer("resources/subscribe");
  // This response is not forwarded because the client did not send the request.
  CHECK(test_transport.got.size() == before);
  life.up.send("a", R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":)"
                    R"({"uri":"fake://x"}})");
  CHECK(test_transport.count("resources/updated") == 1);
  test_transport.request(7, "7", "ping", "{}");
  CHECK(test_transport.count("\"id\":7,\"result\"") == 1);
}

TEST_CASE("a response stays pending until the transport reports it as sent") {
  OwnedFd left;
  {
    Life life(first_process(), 2);
    REQUIRE(test_transport.carry() == BH_OK);
    life.settle();
    REQUIRE(test_transport.count("was restarted") == 2);
    test_transport.resume()->settled(test_transport.host->ctx, test_transport.session, 5);
    left = life.leave();
  }
  Life life(std::move(left), 3);
  REQUIRE(test_transport.carry() == BH_OK);
  CHECK(test_transport.before.restored == 1);
  life.settle();
  CHECK(test_transport.count("was restarted") == 1);
  CHECK(test_transport.count("\"id\":6,\"error\"") == 1);
}

TEST_CASE("a disconnected client leaves no state") {
  OwnedFd left;
  {
    Life life(first_process(), 2);
    REQUIRE(test_transport.carry() == BH_OK);
    test_transport.transport()->session_close(test_transport.host->ctx, test_transport.session,
                                              BH_SESSION_GONE);
    left = life.leave();
  }
  Life life(std::move(left), 3);
  REQUIRE(test_transport.carry() == BH_OK);
  CHECK(test_transport.before.restored == 0);
  CHECK(test_transport.before.note == 0);
  life.settle();
  CHECK(test_transport.got.empty());
}

TEST_CASE("a client repeats its handshake if the response was not sent") {
  OwnedFd left;
  {
    Life life(nothing(), 1);
    REQUIRE(test_transport.carry() == BH_OK);
    test_transport.initialize(1);
    REQUIRE(test_transport.got.size() == 1);
    left = life.leave();
  }
  Life life(std::move(left), 2);
  REQUIRE(test_transport.carry() == BH_OK);
  CHECK(test_transport.before.restored == 0);
  life.settle();
  CHECK(test_transport.count("send initialize again") == 1);
  test_transport.resume()->settled(test_transport.host->ctx, test_transport.session, 1);
  test_transport.initialize(2);
  CHECK(test_transport.count("protocolVersion") == 1);
}

TEST_CASE("only unprocessed input is restored") {
  OwnedFd at_first, at_last;
  const std::string line = R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{}})";
  {
    Life life(nothing(), 1);
    REQUIRE(test_transport.carry() == BH_OK);
    CHECK(test_transport.before.unread.n == 0);
    REQUIRE(test_transport.resume()->keep(test_transport.host->ctx, test_transport.session,
                                          bh::str(line + "\nrest"), 0) == BH_OK);
    test_transport.resume()->taken(test_transport.host->ctx, test_transport.session,
                                   line.size() + 1);
    at_first = life.leave();
    test_transport.send(1, line);
    at_last = life.leave();
  }
  {
    Life life(std::move(at_first), 2);
    REQUIRE(test_transport.carry() == BH_OK);
    CHECK(bh::view(test_transport.before.unread) == line + "\nrest");
    life.settle();
    CHECK(test_transport.got.empty());
  }
  Life life(std::move(at_last), 2);
  REQUIRE(test_transport.carry() == BH_OK);
  CHECK(bh::view(test_transport.before.unread) == "rest");
  life.settle();
  CHECK(test_transport.count("was restarted") == 1);
}

TEST_CASE("nothing is restored without a ledger, and only one client can be restored") {
  {
    Life life(nothing(), 1, false);
    CHECK(test_transport.carry() == BH_E_UNSUPPORTED);
  }
  Life life(nothing(), 1);
  REQUIRE(test_transport.carry() == BH_OK);
  CHECK(test_transport.carry() == BH_E_UNSUPPORTED);
}

TEST_CASE("a session that its client identifies resumes with its subscriptions and log level") {
  OwnedFd left;
  std::string sealed;
  {
    Life life(nothing(), 1);
    sealed = test_transport.open_sealed("id");
    life.settle();
    test_transport.request(3, "3", "logging/setLevel", R"({"level":"error"})");
    test_transport.request(4, "4", "resources/subscribe", uri);
    life.answer("resources/subscribe");
    left = life.leave();
  }
  Life life(std::move(left), 2);
  life.settle();
  REQUIRE(test_transport.reopen("id", sealed) == BH_OK);
  life.answer("resources/subscribe");
  REQUIRE(life.turn_until([&] { return !life.sent("logging/setLevel").empty(); }));
  life.up.send("a", R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":)"
                    R"({"uri":"fake://x"}})");
  CHECK(test_transport.count("resources/updated") == 1);
  CHECK(test_transport.count("list_changed") == 0);  // the client never listed anything
}

TEST_CASE("an evicted session resumes, however many other sessions follow") {
  Life life(nothing(), 1);
  const std::string sealed = test_transport.open_sealed("mine");
  test_transport.close(BH_SESSION_EVICTED);
  for (std::size_t i = 0; i < Reopening::max_ids + 1'000; ++i) {
    test_transport.open_sealed("other" + std::to_string(i));
    test_transport.close(BH_SESSION_EVICTED);
    test_transport.got.clear();
  }
  REQUIRE(test_transport.reopen("mine", sealed) == BH_OK);
  test_transport.request(2, "2", "ping", "{}");
  CHECK(test_transport.count(R"("id":2,"result")") == 1);
  test_transport.close(BH_SESSION_EVICTED);
  CHECK(test_transport.reopen("mine", sealed) == BH_OK);
}

TEST_CASE("a session that its client closed is resumed neither by this process nor by the next") {
  OwnedFd left;
  std::string mine, others;
  {
    Life life(nothing(), 1);
    const std::string ended = test_transport.open_sealed("ended");
    test_transport.close(BH_SESSION_GONE);
    CHECK(test_transport.reopen("ended", ended) == BH_STALE);
    mine = test_transport.open_sealed("mine");
    test_transport.close(BH_SESSION_EVICTED);
    REQUIRE(test_transport.reopen("mine", mine) == BH_OK);
    test_transport.close(BH_SESSION_GONE);
    CHECK(test_transport.reopen("mine", mine) == BH_STALE);
    others = test_transport.open_sealed("other");
    left = life.leave();
  }
  Life life(std::move(left), 2);
  CHECK(test_transport.reopen("mine", others) == BH_STALE);
  REQUIRE(test_transport.reopen("other", others) == BH_OK);
  test_transport.close(BH_SESSION_GONE);
  CHECK(test_transport.reopen("other", others) == BH_STALE);
}
