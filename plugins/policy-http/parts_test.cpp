// Tests the requests to the decision point, the parsing of responses, and the cache.
#include <bulkhead/cpp/basics.hpp>

#include <catch2/catch.hpp>

#include "policy-http/answer.hpp"
#include "policy-http/cache.hpp"
#include "policy-http/config.hpp"
#include "policy-http/question.hpp"

using namespace policy_http;

namespace {

Config config(const std::string &more = {}) {
  Config out;
  const std::string bad = Config::read(R"({"url":"https://x/")" + more + "}", &out);
  INFO(bad);
  REQUIRE(bad.empty());
  return out;
}
std::string wrong(const std::string &more) {
  Config out;
  return Config::read(R"({"url":"https://x/")" + more + "}", &out);
}

bh_policy_request call() {
  bh_policy_request r{};
  r.size = sizeof r;
  r.session = 7;
  r.session_calls = 3;
  r.session_age_ns = 5'000'000;
  r.method = bh::str("tools/call");
  r.server = bh::str("files");
  r.name = bh::str("read");
  r.principal = bh::str("local");
  r.process_name = bh::str("agent");
  r.transport = bh::str("http");
  r.definition_hash = bh::str("abc");
  r.meta = bh::str(
      R"({"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","secret":"m"})");
  return r;
}
const std::string arguments = R"({"path":"/etc/passwd"})";

rapidjson::Document parsed(const std::string &text) {
  rapidjson::Document out;
  out.Parse(text.data(), text.size());
  REQUIRE(out.IsObject());
  return out;
}

struct Read {
  std::string bad;
  Answer answer;
};
Read read(const std::string &body, Style style = Style::hook, bool response = false) {
  Question question;
  question.response = response;
  question.decision_id = "d1";
  Read out;
  out.bad = read_answer(style, question, body, &out.answer);
  return out;
}

}  // namespace

TEST_CASE("a request describes the call and contains no other client data") {
  const Question q = make_question(config(), call(), false, arguments);
  const auto body = parsed(q.body);
  CHECK((body["spec_version"] == "policy-hook/v0"));
  CHECK((body["decision_id"].GetString() == q.decision_id));
  CHECK(q.decision_id.size() == 32);
  CHECK((body["trace_id"] == "0af7651916cd43dd8448eb211c80319c"));
  CHECK((body["session_id"] == "7"));
  CHECK((body["on"] == "mcp.request"));
  CHECK(body["approved"].IsFalse());
  CHECK((body["subject"]["type"] == "mcp"));
  CHECK((body["subject"]["method"] == "tools/call"));
  CHECK((body["subject"]["server_name"] == "files"));
  CHECK((body["subject"]["tool_name"] == "read"));
  CHECK((body["subject"]["process_name"] == "agent"));
  CHECK((body["preview"]["arguments"]["path"] == "/etc/passwd"));
  CHECK((body["hashes"]["definition"] == "abc"));
  CHECK((body["hashes"]["arguments"] ==
         "sha256:8976783d93a2000a234cf7e87969f49d7e5e14cc8a99fec4d2d84fd82d393887"));
  CHECK(body["audit_context"]["session_calls"].GetInt() == 3);
  CHECK(q.body.find("secret") == std::string::npos);  // only the trace is sent from _meta
}

TEST_CASE("the profile determines how arguments are sent") {
  const auto sent = [](const std::string &more) {
    return make_question(config(more), call(), false, arguments).body;
  };
  CHECK(sent(R"(,"send":"hashes")").find("passwd") == std::string::npos);
  CHECK(sent(R"(,"send":"hashes")").find("\"arguments\":\"sha256:") != std::string::npos);
  CHECK(sent(R"(,"send":"names")").find("\"arguments\"") == std::string::npos);
  const auto cut = parsed(sent(R"(,"preview_bytes":10)"));
  CHECK(cut["preview"]["truncated"].IsTrue());
  CHECK((cut["preview"]["arguments_text"] == R"({"path":"/)"));
  CHECK(cut["hashes"]["arguments"].IsString());
}

TEST_CASE("a preview is truncated at a character boundary") {
  const auto cut =
      parsed(make_question(config(R"(,"preview_bytes":4)"), call(), false, "{\"ä\":1}").body);
  CHECK((cut["preview"]["arguments_text"] == "{\"ä"));
  const auto less =
      parsed(make_question(config(R"(,"preview_bytes":3)"), call(), false, "{\"ä\":1}").body);
  CHECK((less["preview"]["arguments_text"] == "{\""));
}

TEST_CASE("for Open Policy Agent, the request has the same object as its input") {
  const auto body =
      parsed(make_question(config(R"(,"style":"opa")"), call(), true, R"({"content":[]})").body);
  CHECK((body["input"]["on"] == "mcp.response"));
  CHECK(body["input"]["preview"]["result"]["content"].IsArray());
}

TEST_CASE(
    "the cache key covers all inputs of a decision, but no values that differ in every call") {
  const Config c = config(R"(,"preview_bytes":5)");
  const auto key = [&](const bh_policy_request &r, const std::string &text = arguments,
                       bool response = false) { return make_question(c, r, response, text).key; };
  const std::string usual = key(call());
  CHECK(usual == key(call()));
  bh_policy_request later = call();
  later.session_calls = 9;
  later.session_age_ns = 1;
  later.meta = {};
  later.exchange = 99;
  CHECK(key(later) == usual);
  // These arguments differ from the usual ones only beyond the part that is sent as a preview.
  CHECK(key(call(), R"({"path":"/etc/shadow"})") != usual);
  CHECK(key(call(), arguments, true) != usual);
  for (const auto member :
       {&bh_policy_request::server, &bh_policy_request::name, &bh_policy_request::principal,
        &bh_policy_request::process_name, &bh_policy_request::transport, &bh_policy_request::peer,
        &bh_policy_request::definition_hash, &bh_policy_request::argument,
        &bh_policy_request::context, &bh_policy_request::extra}) {
    bh_policy_request other = call();
    other.*member = bh::str("other");
    CHECK(key(other) != usual);
  }
  bh_policy_request session = call();
  session.session = 8;
  CHECK(key(session) != usual);
  bh_policy_request approved = call();
  approved.flags = BH_REQUEST_APPROVED;
  CHECK(key(approved) != usual);
}

TEST_CASE("valid responses of a hook are accepted") {
  CHECK(read(R"({"decision":"allow"})").answer.verdict == BH_VERDICT_ALLOW);
  CHECK(read(R"({"decision":"ask"})").answer.verdict == BH_VERDICT_ASK);
  const Read block =
      read(R"({"decision":"block","decision_id":"d1","rule_id":"r\n1","reason":"no","ttl_ms":5,)"
           R"("priority":3,"audit_tags":["x"],"redactions":[]})");
  CHECK(block.bad.empty());
  CHECK(block.answer.verdict == BH_VERDICT_BLOCK);
  CHECK(block.answer.rule == "r 1");
  CHECK(block.answer.reason == "no");
  CHECK(block.answer.ttl_ms == 5);
  CHECK(read(R"({"decision":"block","reason":"a\u009b2Jb\u202e\u2028c"})").answer.reason ==
        "a 2Jb  c");
  const Read rewrite =
      read(R"({"decision":"rewrite","rewrite_target":"arguments","rewrite_value":{"a":[1,"x"]}})");
  CHECK(rewrite.answer.verdict == BH_VERDICT_REWRITE);
  CHECK(rewrite.answer.rewritten == R"({"a":[1,"x"]})");
  CHECK(read(R"({"decision":"rewrite","rewrite_target":"result","rewrite_value":{}})", Style::hook,
             true)
            .bad.empty());
}

TEST_CASE("invalid responses are rejected") {
  const std::string deep = std::string(5000, '[') + std::string(5000, ']');
  for (const std::string &body :
       {std::string(), std::string("<html>"), std::string("[]"), std::string("{}"),
        std::string(R"({"decision":"allow"} {"decision":"block"})"),
        std::string(R"({"decision":"block","decision":"allow"})"),
        std::string(R"({"decision":"ALLOW"})"), std::string(R"({"decision":true})"),
        std::string(R"({"decision":"allow","decision_id":"d2"})"),
        std::string(R"({"decision":"allow","spec_version":"policy-hook/v9"})"),
        std::string(R"({"decision":"allow","ttl_ms":-1})"),
        std::string(R"({"decision":"allow","ttl_ms":"1"})"),
        std::string(R"({"decision":"allow","rule_id":1})"),
        std::string(R"({"decision":"allow","redactions":["arguments.a"]})"),
        std::string(R"({"decision":"rewrite"})"),
        std::string(R"({"decision":"rewrite","rewrite_target":"result","rewrite_value":{}})"),
        std::string(R"({"decision":"rewrite","rewrite_target":"arguments","rewrite_value":1})"),
        R"({"decision":"allow","x":)" + deep + "}"}) {
    INFO(body.substr(0, 100));
    CHECK_FALSE(read(body).bad.empty());
  }
}

TEST_CASE("valid responses of Open Policy Agent are accepted") {
  const auto opa = [](const std::string &body) { return read(body, Style::opa); };
  CHECK(opa(R"({"result":true})").answer.verdict == BH_VERDICT_ALLOW);
  CHECK(opa(R"({"result":false,"decision_id":"its own"})").answer.verdict == BH_VERDICT_BLOCK);
  CHECK(opa(R"({"result":{"decision":"ask","rule_id":"r"}})").answer.verdict == BH_VERDICT_ASK);
  CHECK(opa("{}").bad.find("undefined") != std::string::npos);
  CHECK_FALSE(opa(R"({"result":"allow"})").bad.empty());
  CHECK(opa(R"({"result":true,"result":false})").bad == "duplicate member");
  CHECK(opa(R"({"result":null,"result":true})").bad == "duplicate member");
  CHECK_FALSE(opa(R"({"result":{"allow":true}})").bad.empty());
}

TEST_CASE("responses are cached for their time to live, up to the limit") {
  constexpr std::uint64_t ms = 1'000'000;
  Cache cache(2, 100);
  Answer answer;
  answer.ttl_ms = 10;
  cache.keep("a", answer, 0);
  CHECK(cache.find("a", 9 * ms) != nullptr);
  CHECK(cache.find("a", 10 * ms) == nullptr);
  CHECK(cache.size() == 0);
  answer.ttl_ms = 1'000'000'000;
  cache.keep("long", answer, 0);
  CHECK(cache.find("long", 99 * ms) != nullptr);
  CHECK(cache.find("long", 100 * ms) == nullptr);
  answer.ttl_ms = 0;
  cache.keep("none", answer, 0);
  answer.ttl_ms = 50;
  answer.verdict = BH_VERDICT_REWRITE;
  cache.keep("rewrite", answer, 0);
  CHECK(cache.size() == 0);
  answer.verdict = BH_VERDICT_ALLOW;
  cache.keep("a", answer, 0);
  cache.keep("b", answer, 0);
  CHECK(cache.find("a", 0) != nullptr);
  cache.keep("c", answer, 0);
  CHECK(cache.size() == 2);
  CHECK(cache.find("b", 0) == nullptr);
  CHECK(cache.find("a", 0) != nullptr);
  answer.rule = "again";
  cache.keep("a", answer, 0);
  CHECK(cache.size() == 2);
  CHECK(cache.find("a", 0)->rule == "again");
  Cache off(0, 100);
  off.keep("a", answer, 0);
  CHECK(off.find("a", 0) == nullptr);
}

TEST_CASE("configuration errors name the key") {
  CHECK(wrong(R"(,"colour":1)").starts_with("colour: "));
  CHECK(wrong(R"(,"style":"x")").starts_with("style: "));
  CHECK(wrong(R"(,"send":"all")").starts_with("send: "));
  CHECK(wrong(R"(,"on":[])").starts_with("on: "));
  CHECK(wrong(R"(,"on":["http.request"])").starts_with("on: "));
  CHECK(wrong(R"(,"cache_entries":-1)").starts_with("cache_entries: "));
  CHECK(wrong(R"(,"max_in_flight":0)").starts_with("max_in_flight: "));
  CHECK(wrong(R"(,"profile_rules":[])").find("rules = false") != std::string::npos);
}
