// Tests the conversion of responses. Results that a policy has rewritten are converted like results
// from the server.
#include <catch2/catch.hpp>
#include <string>

#include "route/call_world.hpp"
#include "route/stateless_form.hpp"

namespace bulkhead {
namespace {

const StatelessForm &no_hints() {
  static StatelessForm form{false};
  form.set_server_info(R"({"name":"gateway","version":"1"})");
  return form;
}

enum class Pair : std::uint8_t { sessions, old_client, old_server, none_old };

// A call between a client and a server of the given protocol generations.
struct BridgeWorld : World {
  explicit BridgeWorld(Pair pair, std::uint32_t needs = 0) {
    policy.needs = BH_POLICY_DECIDES | needs;
    policy.observes = BH_PENDING;
    lane.stateless = pair == Pair::old_client || pair == Pair::none_old;
    begin(1);
    if (pair == Pair::old_server || pair == Pair::none_old) {
      table.get(id)->request.reply.form = &no_hints();
    }
  }
  // Makes the server respond, with the outcome "result" or "error".
  void server(const std::string &outcome, const std::string &value) {
    Call &call = *table.get(id);
    const Scanned answer(R"({"jsonrpc":"2.0","id":)" + std::to_string(call.exchange->id) + ",\"" +
                         outcome + "\":" + value + "}");
    call_answers.answered(call, answer.get());
  }
  // Returns the client's message, which must be the only one.
  std::string told() const {
    REQUIRE(client.sent.size() == 1);
    CHECK(table.size() == 0);
    return client.sent[0].text;
  }
};

std::string answer_with(const std::string &result) {
  return R"({"jsonrpc":"2.0","id":"c","result":)" + result + "}";
}

Gate::Decision rewrite_to(std::string result) {
  Gate::Decision out;
  out.verdict = Gate::Verdict::rewrite;
  out.rule = "rule";
  out.replacement = std::move(result);
  return out;
}

}  // namespace

TEST_CASE("a rewritten result is converted like the server's") {
  const std::string plain = R"({"content":[{"type":"text","text":"***"}]})";
  const std::string typed =
      R"({"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{}}})";
  for (const Pair pair : {Pair::sessions, Pair::old_client, Pair::old_server, Pair::none_old}) {
    for (const std::string &result : {plain, typed}) {
      INFO(static_cast<int>(pair) << " " << result);
      BridgeWorld direct(pair), judged(pair, BH_POLICY_READS_RESULTS);
      direct.server("result", result);
      judged.server("result", R"({"content":[{"type":"text","text":"secret"}]})");
      judged.decide(rewrite_to(result));
      CHECK(judged.told() == direct.told());
      CHECK(judged.told().find("secret") == std::string::npos);
      if (pair == Pair::sessions) CHECK(direct.told() == answer_with(result));
      const std::string type(mcp::member(mcp::member(direct.told(), "result"), "resultType"));
      CHECK((type == "\"complete\"") == (pair == Pair::old_server || pair == Pair::none_old ||
                                         (pair == Pair::sessions && result == typed)));
    }
  }
}

TEST_CASE("a rewritten result that asks for input is checked like the server's") {
  const std::string asks =
      R"({"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}})";
  BridgeWorld w(Pair::none_old, BH_POLICY_READS_RESULTS);
  w.session.repeats_requests = true;
  w.server("result", R"({"content":[]})");
  w.decide(rewrite_to(asks));
  const std::string error(mcp::member(w.told(), "error"));
  CHECK(mcp::member(error, "code") == "-32603");
  CHECK(mcp::member(error, "message").find("server \\\"s\\\" ") != std::string_view::npos);
}

TEST_CASE("only the code of an error is converted, and its text is kept") {
  // -32002 (resource not found) is -32602 in MCP 2026-07-28.
  const std::string error = R"({"code":-32002,"message":"no x","data":{"uri":"x:y","n":1.0}})";
  for (const Pair pair : {Pair::sessions, Pair::old_server}) {
    BridgeWorld w(pair);
    w.server("error", error);
    const bool converted = pair == Pair::old_server;
    CHECK(w.told() == R"({"jsonrpc":"2.0","id":"c","error":{"code":)" +
                          std::string(converted ? "-32602" : "-32002") +
                          R"(,"message":"no x","data":{"uri":"x:y","n":1.0}}})");
  }
}

TEST_CASE("URLs that a client must visit do not pass a policy that evaluates input") {
  const std::string error =
      R"({"code":-32042,"message":"m","data":{"elicitations":[{"url":"https://secret/"}]}})";
  for (const bool judges : {false, true}) {
    for (const Pair pair : {Pair::sessions, Pair::old_server}) {
      BridgeWorld w(pair, judges ? BH_POLICY_JUDGES_INPUT : 0);
      w.server("error", error);
      CHECK((w.told().find("secret") == std::string::npos) == judges);
      CHECK(mcp::member(mcp::member(w.told(), "error"), "code") ==
            (judges || pair == Pair::old_server ? "-32603" : "-32042"));
    }
  }
}

TEST_CASE("a model sees why its tool cannot be called") {
  const std::string lacks =
      R"({"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}})";
  BridgeWorld w(Pair::old_client);
  w.server("error", lacks);
  const std::string result(mcp::member(w.told(), "result"));
  CHECK(mcp::member(result, "isError") == "true");
  CHECK(result.find(R"(server \"s\": the server requires sampling)") != std::string::npos);
}

}  // namespace bulkhead
