#include <catch2/catch.hpp>

#include <thread>
#include <type_traits>
#include <vector>

#include "bulkhead/cpp/messages.hpp"
#include "bulkhead/cpp/tools.hpp"
#include "host_tables/extensions.hpp"
#include "host_tables/reactor_tables.hpp"
#include "host_tables/table_set.hpp"

using namespace bulkhead;
using namespace bulkhead::host_tables;

namespace {

// A host with one plugin. Records the calls that it receives. The plugin's ctx is the host's
// address.
struct FakeHost {
  std::unique_ptr<Reactor> loop = *Reactor::create();
  const std::thread::id thread = std::this_thread::get_id();
  std::vector<std::string> got;

  static FakeHost &of(void *ctx) noexcept { return *static_cast<FakeHost *>(ctx); }
  Reactor &reactor() const noexcept { return *loop; }
  const void *owner() const noexcept { return this; }
  bool on_loop_thread() const noexcept { return std::this_thread::get_id() == thread; }
  void note(std::string text) { got.push_back(std::move(text)); }
  void turn() const { loop->poll(0); }

  bh_status session_open(const bh_peer &peer, bh_session *out, bh_error *) {
    note("open " + std::string(bh::view(peer.transport)));
    *out = 7;
    return BH_OK;
  }
  bh_status deliver(const bh_incoming &message, bh_delivery *) {
    CHECK(message.size == sizeof message);
    note("deliver " + std::to_string(message.session) + "/" + std::to_string(message.stream) + " " +
         std::string(bh::view(message.message)));
    return BH_OK;
  }
  void stream_gone(bh_session session, std::uint64_t) { note("gone " + std::to_string(session)); }
  void session_close(bh_session, std::uint32_t how) { note("close " + std::to_string(how)); }
  bh_status check_revision(bh_session, std::string_view revision) {
    return revision == "good" ? BH_OK : BH_E_INVALID;
  }
  void finished() { note("finished"); }
  void set_process_name(bh_session, std::string_view name) { note("name " + std::string(name)); }
  void lane_message(bh_lane, std::uint64_t exchange, std::string_view text) {
    note("message " + std::to_string(exchange) + " " + std::string(text));
  }
  void lane_exchange_failed(bh_lane, std::uint64_t exchange, const LaneFailure &failure) {
    note("failed " + std::to_string(exchange) + " " + failure.error.text);
    failures.push_back(failure);
  }
  void lane_down(bh_lane, const LaneFailure &failure) { note("down " + failure.error.text); }
  std::vector<LaneFailure> failures;
  void lane_closed(bh_lane) { note("closed"); }
  bh_status call_complete(bh_call call, std::uint32_t, std::string_view json) {
    note("complete " + std::to_string(call) + " " + std::string(json));
    return BH_STALE;
  }
  void call_progress(bh_call, double, double, std::string_view text) {
    note("progress " + std::string(text));
  }
  void list_changed(std::uint32_t kind) { note("list " + std::to_string(kind)); }
  void resource_updated(std::string_view uri) { note("updated " + std::string(uri)); }
  void call_event(bh_call, std::uint32_t, std::string_view text) {
    note("event " + std::to_string(text.size()));
  }
  static std::string copy(const bh_verdict &verdict) {
    return std::string(bh::view(verdict.reason));
  }
  void policy_decided(std::uint64_t number, const std::string &reason) {
    note("decided " + std::to_string(number) + " " + reason);
  }
  void policy_filtered(std::uint64_t, bool listed) { note(listed ? "listed" : "hidden"); }
  void policy_changed() { note("changed"); }
  void records_committed(std::uint64_t below) { note("committed " + std::to_string(below)); }
  static constexpr std::string_view http_missing = "no client here";
  const bh_http_service *service = nullptr;
  const bh_http_service *http_service(void **self) {
    *self = this;
    return service;
  }
};

using All = TableSet<TransportTable<FakeHost>, ConnectorTable<FakeHost>, ToolsTable<FakeHost>,
                     EventTable<FakeHost>, PolicyTable<FakeHost>, TelemetryTable<FakeHost>,
                     HttpTable<FakeHost>>;

template <class T, class Set>
const T *table(const Set &set, const char *id) {
  const auto *found = static_cast<const T *>(set.find(id));
  REQUIRE(found != nullptr);
  CHECK(found->size == sizeof(T));
  return found;
}

using Notes = std::vector<std::string>;

}  // namespace

TEST_CASE("table set: a host offers only the tables that it lists") {
  const bh_limits limits{};
  const TableSet<ConnectorTable<FakeHost>, EventTable<FakeHost>> set(limits);
  CHECK(set.find(BH_EXT_HOST_CONNECTOR) != nullptr);
  CHECK(set.find(BH_EXT_HOST_EVENT) != nullptr);
  CHECK(set.find(BH_EXT_HOST_TRANSPORT) == nullptr);
  CHECK(set.find(BH_EXT_HOST_HTTP) == nullptr);
  CHECK(set.find("") == nullptr);
}

TEST_CASE("table set: each host has its own tables and limits") {
  bh_limits one{}, two{};
  one.message_bytes = 1;
  two.message_bytes = 2;
  const All first(one);
  const All second(two);
  const auto *a = table<bh_host_connector>(first, BH_EXT_HOST_CONNECTOR);
  const auto *b = table<bh_host_connector>(second, BH_EXT_HOST_CONNECTOR);
  CHECK(a != b);
  CHECK(a->limits->message_bytes == 1);
  CHECK(b->limits->message_bytes == 2);
  CHECK(table<bh_host_transport>(first, BH_EXT_HOST_TRANSPORT)->limits->message_bytes == 1);
  CHECK(table<bh_host_transport>(second, BH_EXT_HOST_TRANSPORT)->limits->message_bytes == 2);
}

TEST_CASE("tables: functions restricted to the reactor thread call the receiver immediately") {
  const bh_limits limits{};
  const All set(limits);
  FakeHost host;
  const auto *transport = table<bh_host_transport>(set, BH_EXT_HOST_TRANSPORT);
  bh_peer peer{};
  peer.transport = bh::str("t");
  bh_session session = 0;
  CHECK(transport->session_open(&host, &peer, &session, nullptr) == BH_OK);
  CHECK(session == 7);
  bh_delivery out{};
  bh_incoming incoming{};
  incoming.size = sizeof incoming;
  incoming.session = 7;
  incoming.stream = 3;
  incoming.message = bh::str("{}");
  CHECK(transport->deliver(&host, &incoming, &out) == BH_OK);
  transport->stream_gone(&host, 7, 3);
  transport->session_close(&host, 7, BH_SESSION_INPUT_ENDED);
  CHECK(transport->check_revision(&host, 7, bh::str("good")) == BH_OK);
  CHECK(transport->check_revision(&host, 7, bh::str("bad")) == BH_E_INVALID);
  transport->set_process_name(&host, 7, bh::str("p"));
  transport->finished(&host);
  CHECK(host.got == Notes{"open t", "deliver 7/3 {}", "gone 7", "close 1", "name p", "finished"});

  host.got.clear();
  const auto *connector = table<bh_host_connector>(set, BH_EXT_HOST_CONNECTOR);
  connector->message(&host, 1, 9, bh::str("text"));
  const bh_error error = bh::make_error(BH_E_AUTH, "who are you?", 7);
  const std::vector<bh_str> challenges(BH_CHALLENGE_COUNT + 1, bh::str("Basic"));
  const bh_lane_failure failure{sizeof failure,         401, &error,        challenges.data(),
                                BH_CHALLENGE_COUNT + 1, 0,   bh::str("a b")};
  connector->exchange_failed(&host, 1, 9, &failure);
  connector->lane_down(&host, 1, nullptr);  // violates the ABI
  connector->lane_closed(&host, 1);
  CHECK(host.got ==
        Notes{"message 9 text", "failed 9 who are you?", "down no reason given", "closed"});
  REQUIRE(host.failures.size() == 1);
  CHECK(host.failures[0].error.code == BH_E_AUTH);
  CHECK(host.failures[0].retry_after_ms == 7);
  CHECK(host.failures[0].http_status == 401);
  CHECK(host.failures[0].scope == "a b");
  CHECK(host.failures[0].challenges == std::vector<std::string>(BH_CHALLENGE_COUNT, "Basic"));
}

TEST_CASE("tables: challenges that are too long in total are dropped") {
  const std::string half(BH_CHALLENGE_BYTES / 2, 'x'), more = half + "x";
  const bh_str challenges[] = {bh::str(half), bh::str(more), bh::str("y")};
  const bh_error error = bh::make_error();
  bh_lane_failure failure = bh::lane_failure(error);
  failure.challenges = challenges;
  failure.challenge_count = 3;
  failure.error = nullptr;  // violates the ABI
  const LaneFailure copy(&failure);
  CHECK(copy.challenges == std::vector<std::string>{half, "y"});
  CHECK(copy.error.code == BH_E_INTERNAL);
}

TEST_CASE("tables: tools plugins may call from any thread") {
  const bh_limits limits{};
  const All set(limits);
  FakeHost host;
  const auto *tools = table<bh_host_tools>(set, BH_EXT_HOST_TOOLS);
  const auto *events = table<bh_host_event>(set, BH_EXT_HOST_EVENT);
  const auto play = [&] {
    bh_result result{};
    result.size = sizeof result;
    result.json = bh::buf("[1]");
    const bh_status status = tools->complete(&host, 5, &result);
    const std::string half = "half";
    const bh_progress progress = bh::progress(1, 2, half);
    tools->progress(&host, 5, &progress);
    events->event(&host, 5, BH_RECORD_NET, bh::str(std::string("{}")));
    events->event(&host, 5, BH_RECORD_NET, bh::str(std::string(BH_EVENT_BYTES + 1, 'x')));
    const bh_list_info info = bh::list_info(BH_LIST_TOOLS);
    tools->list_changed(&host, &info);
    tools->resource_updated(&host, bh::str(std::string("u:1")));
    return status;
  };
  // An event is dropped if its detail exceeds the ABI limit.
  const Notes all{"complete 5 [1]", "progress half", "event 2",
                  "list " + std::to_string(BH_LIST_TOOLS), "updated u:1"};
  SECTION("on the loop's thread: at once, with the receiver's status") {
    CHECK(play() == BH_STALE);
    CHECK(host.got == all);
  }
  SECTION("on another thread: posted, with copies of the texts") {
    bh_status status = BH_STALE;
    std::thread([&] { status = play(); }).join();
    CHECK(status == BH_OK);
    CHECK(host.got.empty());
    host.turn();
    CHECK(host.got == all);
  }
}

TEST_CASE("tables: policy decisions and telemetry acknowledgements are always posted") {
  const bh_limits limits{};
  const All set(limits);
  FakeHost host;
  const auto *policy = table<bh_host_policy>(set, BH_EXT_HOST_POLICY);
  {
    const std::string reason = "a reason that the plugin owns";
    bh_verdict verdict{};
    verdict.size = sizeof verdict;
    verdict.reason = bh::str(reason);
    CHECK(policy->decided(&host, 4, &verdict) == BH_OK);
  }
  CHECK(policy->filtered(&host, 4, 1) == BH_OK);
  CHECK(policy->filtered(&host, 4, 2) == BH_OK);
  policy->changed(&host);
  table<bh_host_telemetry>(set, BH_EXT_HOST_TELEMETRY)->committed(&host, 12);
  CHECK(host.got.empty());
  SECTION("and run in the next turn") {
    host.turn();
    CHECK(host.got == Notes{"decided 4 a reason that the plugin owns", "listed", "hidden",
                            "changed", "committed 12"});
  }
  SECTION("unless the host forgets them") {
    host.loop->forget(host.owner());
    host.turn();
    CHECK(host.got.empty());
  }
}

TEST_CASE(
    "tables: an HTTP request fails with the host's error message if there is no HTTP client") {
  const bh_limits limits{};
  const All set(limits);
  FakeHost host;
  const auto *http = table<bh_host_http>(set, BH_EXT_HOST_HTTP);
  bh_error error = bh::make_error();
  bh_http_id id = 0;
  CHECK(http->start(&host, nullptr, nullptr, nullptr, &id, &error) == BH_E_UNSUPPORTED);
  CHECK(bh::text(error) == "no client here");
  CHECK(http->cancel(&host, 1) == BH_STALE);
  bh_http_service service{};
  service.start = [](void *self, const bh_http_request *, const bh_http_handler *, void *,
                     bh_http_id *out, bh_error *) -> bh_status {
    static_cast<FakeHost *>(self)->note("start");
    *out = 3;
    return BH_OK;
  };
  host.service = &service;
  CHECK(http->start(&host, nullptr, nullptr, nullptr, &id, &error) == BH_OK);
  CHECK(id == 3);
  CHECK(host.got == Notes{"start"});
}

namespace {

struct FakePlugin {
  std::unique_ptr<Reactor> loop = *Reactor::create();
  bool stopped = false;
  std::string misused;

  static FakePlugin &of(void *ctx) noexcept { return *static_cast<FakePlugin *>(ctx); }
  Reactor &reactor() const noexcept { return *loop; }
  bh_status check_call(bool wrong, const char *function) noexcept {
    if (wrong) misused = function;
    if (wrong) return BH_E_INVALID;
    return stopped ? BH_STALE : BH_OK;
  }
};

void count(void *arg) {
  ++*static_cast<int *>(arg);
}

}  // namespace

TEST_CASE("reactor tables: a plugin owns the functions and timers that it starts") {
  using Tables = ReactorTables<FakePlugin>;
  FakePlugin plugin;
  int runs = 0;
  CHECK(Tables::executor.post(&plugin, count, &runs) == BH_OK);
  Tables::executor.defer(&plugin, count, &runs);
  CHECK(Tables::executor.timer_start(&plugin, 60'000, count, &runs) != 0);
  CHECK(plugin.loop->held(&plugin).timers == 1);
  plugin.loop->poll(0);
  CHECK(runs == 2);
}

TEST_CASE("reactor tables: invalid arguments and calls after stop() are rejected") {
  using Tables = ReactorTables<FakePlugin>;
  FakePlugin plugin;
  bh_watch watch = 0;
  CHECK(Tables::executor.post(&plugin, nullptr, nullptr) == BH_E_INVALID);
  CHECK(plugin.misused == "executor.post");
  CHECK(Tables::executor.timer_start(&plugin, 1, nullptr, nullptr) == 0);
  CHECK(plugin.misused == "executor.timer_start");
  CHECK(Tables::executor.run_blocking(&plugin, count, nullptr, nullptr) == BH_E_INVALID);
  CHECK(plugin.misused == "executor.run_blocking");
  const auto ready = [](void *, std::int32_t, std::uint32_t) {};
  CHECK(Tables::fd.watch(&plugin, 0, 1u << 30, ready, nullptr, &watch) == BH_E_INVALID);
  CHECK(plugin.misused == "fd.watch");
  CHECK(Tables::fd.modify(&plugin, 1, 1u << 30) == BH_E_INVALID);
  CHECK(plugin.misused == "fd.modify");

  plugin.stopped = true;
  int runs = 0;
  CHECK(Tables::executor.post(&plugin, count, &runs) == BH_STALE);
  Tables::executor.defer(&plugin, count, &runs);
  CHECK(Tables::executor.timer_start(&plugin, 0, count, &runs) == 0);
  CHECK(Tables::fd.watch(&plugin, 0, BH_FD_READ, ready, nullptr, &watch) == BH_STALE);
  plugin.loop->poll(0);
  CHECK(runs == 0);
}
