// Tests the records of rejected messages: each message that is rejected as invalid has one record
// and one error response.
#include "route/client_messages.hpp"

#include <catch2/catch.hpp>

#include "mcp/for_each.hpp"
#include "route/message_world.hpp"
#include "route/record_fakes.hpp"

using namespace bulkhead;

namespace {

// Responds to each request with an empty result.
struct FakeEdge final : ClientEdge {
  explicit FakeEdge(ClientAnswers &a) : answers(a) {}
  bool speaks(const Session &, const Message &, const WireHeaders *) const override { return true; }
  bool begins_session(const mcp::Scan &) const override { return false; }
  bool takes_batches(const Session &) const override { return batches; }
  void request(Session &, Incoming &request) override { answers.result(request, "{}"); }
  void notification(Session &, const Message &) override { ++notifications; }

  ClientAnswers &answers;
  bool batches = true;
  std::uint32_t notifications = 0;
};

struct World : MessageWorld {
  FakeArchive archive;
  Profile profile;
  SessionJournal journal{sessions, *loop, own_limits};
  FakeEdge edge{answers};
  ClientMessages messages{
      {profile, *loop, counters, sessions, calls, recorder, journal, answers, asks, edge}};

  explicit World(std::uint32_t needs = BH_TELEMETRY_TEXTS) {
    archive.needs = needs;
    recorder.add_sink(&archive_table, &archive);
  }
  // Delivers the message. Returns the error responses, and the records of messages that were
  // rejected.
  struct Rejected {
    std::vector<std::string> errors;
    std::vector<FakeArchive::Record> records;
    std::uint64_t counted = 0;
  };
  Rejected deliver(const std::string &message) {
    Rejected out;
    const std::size_t first_sent = client.sent.size(), first_record = archive.records.size();
    const std::uint64_t before = counters.refused_messages;
    bh_delivery delivery{};
    messages.handle(first, {first.handle, ++stream, 0}, message, &delivery);
    for (std::size_t i = first_sent; i < client.sent.size(); ++i) {
      const std::string &text = client.sent[i].text;
      const auto add = [&](std::string_view answer) {
        if (!mcp::member(answer, "error").empty()) out.errors.emplace_back(answer);
      };
      text.starts_with('[') ? static_cast<void>(mcp::for_each_item(text, add)) : add(text);
    }
    recorder.flush();
    for (std::size_t i = first_record; i < archive.records.size(); ++i) {
      if (archive.records[i].outcome != BH_OUTCOME_OK) out.records.push_back(archive.records[i]);
    }
    out.counted = counters.refused_messages - before;
    return out;
  }
  std::uint64_t stream = 0;
};

std::string request(int id, const std::string &method, const std::string &params) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":")" + method +
         R"(","params":)" + params + "}";
}

std::string batch_of(int n, const std::string &last = "") {
  std::string text = "[";
  for (int i = 1; i <= n; ++i) {
    if (i > 1) text += ',';
    text += i == n && !last.empty() ? last : request(i, "ping", "{}");
  }
  return text + "]";
}

std::string_view text_of_error(const std::string &answer) {
  return at(answer, {"error", "message"});
}

}  // namespace

TEST_CASE("a request with duplicate members is rejected with one error and one record") {
  struct Case {
    std::string message, method, name, id;
  };
  const Case cases[] = {
      {request(7, "tools/call", R"({"name":"a__x","name":"a__y","arguments":{"k":"secret"}})"),
       "tools/call", "a__x", "7"},
      {request(8, "tools/call", R"({"name":"a__x","arguments":{},"arguments":{"k":"secret"}})"),
       "tools/call", "a__x", "8"},
      {request(9, "tools/call", R"({"Arguments":{"k":"secret"},"name":"a__x"})"), "tools/call",
       "a__x", "9"},
      {request(10, "resources/read", R"({"uri":"file:///a","uri":"file:///secret"})"),
       "resources/read", "file:///a", "10"},
      {request(11, "prompts/get", R"({"name":"a__p","_meta":1})"), "prompts/get", "a__p", "11"},
      {R"({"id":12,"method":"tools/call","params":{"name":"a__x"}})", "tools/call", "a__x", "12"},
      {R"({"jsonrpc":"2.0","method":"tools/call","params":{"name":"a__x"},"params":{"name":"b"},)"
       R"("id":"t"})",
       "tools/call", "a__x", R"("t")"},
      {R"({"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"a__x"}})",
       "tools/call", "a__x", ""},  // the error has no id, because it is unclear
      {R"({"jsonrpc":"2.0","id":1,"method":"x/y","method":"tools/call"})", "x/y", "", "1"},
      {R"({"jsonrpc":"2.0","id":1})", "unknown", "", "1"},
      {"[]", "unknown", "", ""},
  };
  World w;
  for (const Case &c : cases) {
    CAPTURE(c.message);
    const World::Rejected rejected = w.deliver(c.message);
    REQUIRE(rejected.errors.size() == 1);
    REQUIRE(rejected.records.size() == 1);
    CHECK(rejected.counted == 1);
    const FakeArchive::Record &record = rejected.records[0];
    CHECK(record.method == c.method);
    CHECK(record.name == c.name);
    CHECK(record.request_id == c.id);
    CHECK(record.outcome == BH_OUTCOME_ERROR);
    CHECK(record.principal == "somebody");
    CHECK(record.bytes_in == c.message.size());
    CHECK(at(rejected.errors[0], {"error", "code"}) == "-32600");
    CHECK(at(rejected.errors[0], {"id"}) == c.id);
    CHECK(text_of_error(rejected.errors[0]) == '"' + record.error + '"');
    CHECK(record.response == at(rejected.errors[0], {"error"}));
    // The policy has not evaluated the contents, so they are not recorded.
    CHECK(record.request.empty());
    CHECK(record.response.find("secret") == std::string::npos);
  }
  CHECK(w.client.sent.front().http_status == 400);
}

TEST_CASE("a message that is nested too deeply has one record, with the method if it was read") {
  World w;
  const std::string deep(200, '['), ends(200, ']');
  const std::string params = R"({"name":"a__x","arguments":)" + deep + ends + "}";
  auto rejected = w.deliver(request(1, "tools/call", params));
  REQUIRE(rejected.errors.size() == 1);
  REQUIRE(rejected.records.size() == 1);
  CHECK(rejected.records[0].method == "tools/call");
  CHECK(rejected.records[0].name == "a__x");
  rejected = w.deliver(R"({"jsonrpc":"2.0","params":)" + params + R"(,"method":"tools/call"})");
  REQUIRE(rejected.errors.size() == 1);
  REQUIRE(rejected.records.size() == 1);
  CHECK(rejected.records[0].method == "unknown");
}

TEST_CASE("text that is not JSON, and a message above the size limit, have no record") {
  World w;
  w.profile.limits.message_bytes = 1000;
  for (const std::string &message :
       {std::string("{"), request(1, "tools/call", R"({"name":"\u12"})"),
        request(1, "tools/call", R"({"name":")" + std::string(1000, 'x') + R"("})")}) {
    const World::Rejected rejected = w.deliver(message);
    CHECK(rejected.errors.size() == 1);
    CHECK(rejected.records.empty());
    CHECK(rejected.counted == 1);
  }
}

TEST_CASE("a batch that is rejected as a whole has one record") {
  World w;
  w.edge.batches = false;
  const std::string batch = batch_of(300);
  const World::Rejected rejected = w.deliver(batch);
  REQUIRE(rejected.errors.size() == 1);
  REQUIRE(rejected.records.size() == 1);
  CHECK(rejected.counted == 1);
  CHECK(rejected.records[0].method == "unknown");
  CHECK(rejected.records[0].bytes_in == batch.size());
  CHECK(rejected.records[0].error.starts_with("JSON-RPC batches are supported only in"));
  CHECK(rejected.records[0].request.empty());
  CHECK(w.archive.records.size() == 1);
}

TEST_CASE("the messages of a batch beyond the limit have one record and one error together") {
  World w;
  CHECK(w.deliver(batch_of(256)).records.empty());
  CHECK(w.archive.records.size() == 256);
  for (const int n : {257, 300}) {
    const std::size_t before = w.archive.records.size();
    const std::string batch = batch_of(n);
    const World::Rejected rejected = w.deliver(batch);
    REQUIRE(rejected.errors.size() == 1);
    REQUIRE(rejected.records.size() == 1);
    CHECK(rejected.counted == 1);
    CHECK(rejected.records[0].method == "unknown");
    CHECK(rejected.records[0].error == "a batch can contain at most 256 messages");
    CHECK(text_of_error(rejected.errors[0]) == '"' + rejected.records[0].error + '"');
    CHECK(rejected.records[0].bytes_in == batch.size() - (batch_of(256).size()));
    CHECK(w.archive.records.size() == before + 257);
  }
}

TEST_CASE("each invalid message of a batch has one record and one error") {
  World w;
  const std::string twice = request(5, "tools/call", R"({"name":"a__x","name":"a__y"})");
  World::Rejected rejected = w.deliver("[" + request(1, "ping", "{}") + "," + twice + ",[" +
                                       request(2, "ping", "{}") + "],3]");
  REQUIRE(rejected.errors.size() == 3);
  REQUIRE(rejected.records.size() == 3);
  CHECK(rejected.counted == 3);
  CHECK(rejected.records[0].method == "tools/call");
  CHECK(rejected.records[0].name == "a__x");
  CHECK(rejected.records[1].error == "a batch cannot contain a batch");
  CHECK(rejected.records[2].method == "unknown");
  CHECK(w.archive.records.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(text_of_error(rejected.errors[i]) == '"' + rejected.records[i].error + '"');
  }
}

TEST_CASE("a flood of invalid messages does not exceed the limits for records") {
  const std::string twice = request(5, "tools/call", R"({"name":"a__x","name":"a__y"})");
  const auto blocks = GENERATE(false, true);
  World w(blocks ? BH_TELEMETRY_TEXTS | BH_TELEMETRY_BLOCKS : BH_TELEMETRY_TEXTS);
  w.archive.room = 0;  // the plugin accepts no records
  bh_delivery delivery{};
  for (std::size_t i = 0; i < Recorder::max_waiting + 10; ++i) {
    w.messages.handle(w.first, {w.first.handle, i + 1, 0}, twice, &delivery);
  }
  CHECK(w.client.sent.size() == Recorder::max_waiting + 10);
  // Further messages are dropped from the records and counted or, if the plugin requires records,
  // get the error that requests get.
  CHECK(w.recorder.dropped() == (blocks ? 0 : 10));
  CHECK(w.counters.refused_unrecorded == (blocks ? 10 : 0));
  CHECK(at(w.client.sent.back().text, {"error", "code"}) == (blocks ? "-32603" : "-32600"));
  w.archive.room = SIZE_MAX;
  w.recorder.flush();
  CHECK(w.archive.records.size() == Recorder::max_waiting);
}

TEST_CASE("if a plugin commits records, the error waits for the record of the rejected message") {
  World w(BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS);
  const World::Rejected rejected =
      w.deliver(request(5, "tools/call", R"({"name":"a__x","name":"a__y"})"));
  CHECK(rejected.errors.empty());
  REQUIRE(rejected.records.size() == 1);
  w.recorder.set_committed(&w.archive, w.recorder.barrier());
  w.answers.records_committed();
  REQUIRE(w.client.sent.size() == 1);
  CHECK(w.client.sent[0].http_status == 400);
  CHECK(at(w.client.sent[0].text, {"id"}) == "5");
}
