// Tests rules with a budget (`over`).
#include "rules_test.hpp"

using namespace bulkhead::rules;
using namespace bulkhead::rules::test;

namespace {

std::string limit(std::string_view over, std::string_view condition = "true") {
  return rules("{\"r\": {\"on\": \"mcp.request\", \"if\": \"" + std::string(condition) +
               "\", \"decision\": \"block\", \"over\": " + std::string(over) + "}}");
}
Call in_session(std::uint64_t session, std::string_view tool = "t", std::string_view args = "{}") {
  Call out = call("s", tool, args);
  out.session = session;
  return out;
}

}  // namespace

TEST_CASE("calls are counted per session") {
  World w(limit(R"({"calls": 2})"));
  CHECK(w.decide(in_session(1)) == "allow");
  CHECK(w.decide(in_session(1)) == "allow");
  CHECK(w.decide(in_session(1)) == "block r");
  CHECK(w.decide(in_session(1)) == "block r");
  CHECK(w.decide(in_session(2)) == "allow");
  w.steady += 24ull * 3'600'000;
  CHECK(w.decide(in_session(1)) == "block r");  // without `per`, the count does not expire
}

TEST_CASE("an approved call is counted once") {
  World w(limit(R"({"calls": 1})"));
  CHECK(w.decide(in_session(1)) == "allow");
  Call again = in_session(1);
  again.again = true;
  CHECK(w.decide(again) == "allow");
  CHECK(w.decide(in_session(1)) == "block r");
}

TEST_CASE("calls per minute are counted in sliding windows") {
  World w(limit(R"({"calls": 60, "per": "1m"})"));
  w.steady = 600'000;  // a window starts
  for (int i = 0; i < 60; ++i) CHECK(w.decide("s", "t") == "allow");
  CHECK(w.decide("s", "t") == "block r");
  w.steady += 60'000;  // all calls of the previous window still count
  CHECK(w.decide("s", "t") == "block r");
  w.steady += 30'000;  // half of the calls still count
  for (int i = 0; i < 30; ++i) CHECK(w.decide("s", "t") == "allow");
  CHECK(w.decide("s", "t") == "block r");
  w.steady += 120'000;
  CHECK(w.decide("s", "t") == "allow");
}

TEST_CASE("keys determine which calls share a count") {
  World tools(limit(R"({"calls": 1, "by": ["session", "tool"]})"));
  CHECK(tools.decide(in_session(1, "a")) == "allow");
  CHECK(tools.decide(in_session(1, "b")) == "allow");
  CHECK(tools.decide(in_session(1, "a")) == "block r");
  CHECK(tools.decide(in_session(2, "a")) == "allow");
  World everybody(limit(R"({"calls": 1, "by": []})"));
  CHECK(everybody.decide(in_session(1, "a")) == "allow");
  CHECK(everybody.decide(in_session(2, "b")) == "block r");
  World principals(limit(R"({"calls": 1, "by": "principal"})"));
  CHECK(principals.decide(in_session(1)) == "allow");
  CHECK(principals.decide(in_session(2)) == "block r");
  Call other = in_session(3);
  other.principal = "bert";
  CHECK(principals.decide(other) == "allow");
  // Different names must have different keys, even if their concatenations are equal.
  World names(limit(R"({"calls": 1, "by": ["server", "tool"]})"));
  CHECK(names.decide("a\n1:b", "c") == "allow");
  CHECK(names.decide("a", "b\n1:c") == "allow");
}

TEST_CASE("only calls that match and are allowed are counted") {
  World w(rules(R"j({
    "many": {"on": "mcp.request", "priority": 1, "if": "mcp.request.tool_name == 'a'",
             "decision": "block", "over": {"calls": 1}},
    "never": {"on": "mcp.request", "priority": 2, "if": "has(mcp.request.arguments.bad)",
              "decision": "block"}})j"));
  CHECK(w.decide("s", "b") == "allow");
  CHECK(w.decide("s", "a", R"({"bad":1})") == "block never");
  CHECK(w.decide("s", "a") == "allow");
  CHECK(w.decide("s", "a") == "block many");
  // Explaining a call does not add it to the count.
  World looked(limit(R"({"calls": 1})"));
  std::vector<Look> looks;
  const Call c = call("s", "t");
  for (int i = 0; i < 3; ++i) looked.judge.decide(looked.set, c, &looks);
  REQUIRE(looks.size() == 6);
  CHECK(looks[0].found == Look::Found::within);
  CHECK(looks[1].found == Look::Found::matches);
  CHECK(looked.decide("s", "t") == "allow");
}

TEST_CASE(
    "a budget loaded while a call awaits approval counts the call when it is evaluated again") {
  constexpr auto ask = R"j("look": {"on": "mcp.request", "if": "true", "decision": "ask"})j";
  constexpr auto cap = R"j("cap": {"on": "mcp.request", "if": "true", "decision": "block",
                                   "priority": 1, "over": {"calls": 1}})j";
  const auto numbered = [](std::uint64_t exchange) {
    Call c = in_session(1);
    c.exchange = exchange;
    return c;
  };
  const auto approved = [&](std::uint64_t exchange) {
    Call c = numbered(exchange);
    c.again = c.approved = true;
    return c;
  };
  World w(rules(std::string("{") + ask + "}"));
  for (std::uint64_t i = 1; i <= 3; ++i) CHECK(w.decide(numbered(i)) == "ask look");
  w.set = good(rules(std::string("{") + ask + "," + cap + "}"));
  CHECK(w.decide(approved(1)) == "ask look");
  CHECK(w.decide(approved(1)) == "ask look");  // counted once
  CHECK(w.decide(approved(2)) == "block cap");
  CHECK(w.decide(numbered(4)) == "block cap");
  // The approval of this call was required by another policy. These rules had already allowed and
  // counted the call.
  Call other = numbered(5);
  other.again = true;
  CHECK(w.decide(other) == "ask look");
}

TEST_CASE("a call is counted when it requires approval, whether it is approved or not") {
  World w(rules(R"j({
    "look": {"on": "mcp.request", "if": "true", "decision": "ask"},
    "cap": {"on": "mcp.request", "if": "true", "decision": "block", "priority": 1,
            "over": {"calls": 2}}})j"));
  Call c = in_session(1);
  for (c.exchange = 1; c.exchange <= 2; ++c.exchange) CHECK(w.decide(c) == "ask look");
  CHECK(w.decide(c) == "block cap");
  c.exchange = 1;
  c.again = c.approved = true;
  CHECK(w.decide(c) == "ask look");
}

TEST_CASE("if too many calls await approval, the counts of the oldest calls are discarded") {
  World w(rules(R"j({
    "look": {"on": "mcp.request", "if": "true", "decision": "ask"},
    "cap": {"on": "mcp.request", "if": "true", "decision": "block", "priority": 1,
            "over": {"calls": 4097}}})j"));
  Call c = in_session(1);
  for (c.exchange = 1; c.exchange <= Judge::kMaxAsked + 1; ++c.exchange) {
    if (w.decide(c) != "ask look") FAIL("not asked: " << c.exchange);
  }
  c.again = c.approved = true;
  c.exchange = 2;
  CHECK(w.decide(c) == "ask look");
  c.exchange = 1;  // the call is counted again and exceeds the budget
  CHECK(w.decide(c) == "block cap");
}

TEST_CASE("bytes of arguments and results are counted") {
  World w(limit(R"({"bytes": 30})"));
  Call c = in_session(1, "t", R"({"a":"bcdef"})");  // 13 bytes
  c.exchange = 5;
  CHECK(w.decide(c) == "allow");
  w.judge.observe(w.set, c, R"({"x":1})");  // 7 bytes, 20 in total
  c.exchange = 6;
  CHECK(w.decide(c) == "block r");
  CHECK(w.decide(in_session(1, "t", "{}")) == "allow");
  CHECK(w.set.needs == (BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS | BH_POLICY_READS_RESULTS));
}

TEST_CASE("distinct destinations are counted") {
  World w(limit(R"({"destinations": 2})"));
  CHECK(w.decide("s", "t", R"({"url":"https://a.example/x"})") == "allow");
  CHECK(w.decide("s", "t", R"({"urls":["HTTP://u:p@B.example.:80/?q","see https://a.example"]})") ==
        "allow");
  CHECK(w.decide("s", "t", R"({"url":"https://c.example"})") == "block r");
  CHECK(w.decide("s", "t", R"({"url":"https://a.example/other"})") == "allow");
  CHECK(w.decide("s", "t", R"({"url":"ftp://d.example"})") == "allow");
  CHECK(w.decide("s", "t", "{broken") == "block security.mcp.evaluation_error");
  rapidjson::Document json;
  json.Parse(R"(["http://[::1]:80/","https://x@y@host/","http://","nothttp://z","xhttps://w"])");
  std::set<std::string> hosts;
  collect_hosts(json, &hosts);
  CHECK(hosts == std::set<std::string>{"[::1]", "host", "w", "z"});
}

TEST_CASE("a destination budget counts the hosts in all parts of a request") {
  constexpr auto one = R"({"destinations": 1, "by": []})";
  const Call plain = call("s", "t", R"({"url":"https://a.example"})");
  const auto refused = [&](const Call &second) {
    World w(limit(one));
    CHECK(w.decide(plain) == "allow");
    return w.decide(second);
  };
  const auto with = [&](std::string_view Call::*member, std::string_view text) {
    Call out = plain;
    out.*member = text;
    return out;
  };
  constexpr std::string_view other = R"({"x":"https://b.example/"})";
  for (const auto member : {&Call::meta, &Call::argument, &Call::context, &Call::extra}) {
    CHECK(refused(with(member, other)) == "block r");
    CHECK(refused(with(member, R"({"x":"https://A.example/2"})")) == "allow");
    CHECK(refused(with(member, R"({"x":1,"x":"https://b.example/"})")) ==
          "block security.mcp.evaluation_error");
  }
  for (const auto *method : {"resources/read", "resources/subscribe", "completion/complete"}) {
    Call by_uri = plain;
    by_uri.arguments = {};
    by_uri.method = method;
    by_uri.name = "https://b.example/x";
    CHECK(refused(by_uri) == "block r");
    by_uri.name = "https://a.example/x";
    CHECK(refused(by_uri) == "allow");
  }
  // Member names are searched as well, because the server also receives them.
  CHECK(refused(call("s", "t", R"({"https://b.example/":1})")) == "block r");
  CHECK(refused(call("s", "t", R"({"m":[{"https://b.example/":1}]})")) == "block r");
}

TEST_CASE("hosts are found in all URL forms that URL parsers accept") {
  const auto hosts_in = [](std::string_view text) {
    rapidjson::Document json;
    json.SetString(text.data(), static_cast<rapidjson::SizeType>(text.size()), json.GetAllocator());
    std::set<std::string> hosts;
    collect_hosts(json, &hosts);
    return hosts;
  };
  for (const auto *text :
       {"https:/b.example/x", "https:b.example", "https:\\\\b.example/x", "HTTPS:/\\b.example",
        "ht\ttps://b.example", " \nhttps://b.example", "https:///b.example/",
        "https://%62.example/", "https://u@b.example./", "https://b.ex\nample/"}) {
    INFO(text);
    CHECK(hosts_in(text).contains("b.example"));
  }
  CHECK(hosts_in("see http: it is a scheme").empty());
  CHECK(hosts_in("https://%62.example/") == std::set<std::string>{"b.example"});
  CHECK(hosts_in("http://2130706433/") == std::set<std::string>{"127.0.0.1"});
}

TEST_CASE("a byte budget counts the whole request") {
  const std::string filler = "{\"x\":\"" + std::string(40, 'y') + "\"}";
  for (const auto member :
       {&Call::arguments, &Call::meta, &Call::argument, &Call::context, &Call::extra}) {
    World w(limit(R"({"bytes": 60})"));
    Call c = in_session(1);
    c.*member = filler;
    CHECK(w.decide(c) == "allow");
    CHECK(w.decide(c) == "block r");
  }
  World w(limit(R"({"bytes": 60})"));
  const std::string uri = "note:" + std::string(40, 'y');
  Call c = in_session(1, uri, "");
  c.method = "resources/read";
  CHECK(w.decide(c) == "allow");
  CHECK(w.decide(c) == "block r");
}

TEST_CASE("the results of requests about a task count towards the budgets of its tool") {
  // The creation of the task counts 4 bytes, and each result of tasks/get 20.
  const auto creates = [](World &w, std::uint64_t session, std::string_view tool) {
    const Call c = in_session(session, tool);
    const std::string verdict = w.decide(c);
    if (verdict == "allow") w.judge.observe(w.set, c, "{}");
    return verdict;
  };
  const auto gets = [](World &w, std::uint64_t session, std::string_view tool,
                       std::vector<Look> *looks = nullptr) {
    Call c = in_session(session, tool, "");
    c.exchange = 2;
    c.undecided = true;
    return World::shown(w.judge.observe(w.set, c, R"({"a":"123456789012"})", looks));
  };
  for (const std::string condition :
       {"mcp.request.tool_name == 'job'", "true",
        // The arguments of the call that created the task are not known.
        "mcp.request.tool_name == 'job' && !has(mcp.request.arguments.free)",
        "mcp.request.tool_name == 'job' && mcp.tool.description == ''"}) {
    INFO(condition);
    World w(limit(R"({"bytes": 30})", condition));
    CHECK(creates(w, 1, "job") == "allow");
    CHECK(gets(w, 1, "job") == "allow");  // 24 in total
    CHECK(creates(w, 1, "job") == "allow");
    CHECK(gets(w, 1, "job") == "allow");
    CHECK(creates(w, 1, "job") == "block r");
    CHECK(creates(w, 2, "job") == "allow");  // in another session
  }
  World others(limit(R"({"bytes": 30})", "mcp.request.tool_name == 'job'"));
  std::vector<Look> looks;
  for (int i = 0; i < 3; ++i) {
    CHECK(gets(others, 1, "other") == "allow");
    CHECK(gets(others, 1, "job", &looks) == "allow");  // explained, not counted
  }
  CHECK(creates(others, 1, "job") == "allow");
  // An earlier rule allows the tool, so its calls do not count; for `some`, this depends on the
  // arguments, which are not known.
  World earlier(rules(R"j({
    "first": {"on": "mcp.request", "if": "mcp.request.tool_name == 'free'", "decision": "allow",
              "priority": 1},
    "some": {"on": "mcp.request", "decision": "allow", "priority": 2,
             "if": "mcp.request.tool_name == 'some' && has(mcp.request.arguments.free)"},
    "r": {"on": "mcp.request", "if": "true", "decision": "block",
          "over": {"bytes": 30, "by": ["tool"]}},
    "all": {"on": "mcp.request", "if": "true", "decision": "block", "priority": 500,
            "over": {"bytes": 69, "by": []}}})j"));
  for (int i = 0; i < 3; ++i) gets(earlier, 1, "free");
  CHECK(creates(earlier, 1, "job") == "allow");
  for (int i = 0; i < 2; ++i) gets(earlier, 1, "some");
  CHECK(creates(earlier, 1, "some") == "block r");
  CHECK(creates(earlier, 1, "job") == "allow");  // 48 of 69 in total
  gets(earlier, 1, "job");
  CHECK(creates(earlier, 1, "job2") == "block all");
}

// ---- the maximum number of counts --------------------------------------------------------------

namespace {

// Each call of this client belongs to another session and another process.
void flood(World &w, std::string_view principal, std::size_t calls, std::string_view tool = "t") {
  Call c = call("s", tool);
  c.principal = principal;
  for (std::size_t i = 1; i <= calls; ++i) {
    const std::string process = "process " + std::to_string(i);
    c.session = 1'000'000 + i;
    c.process_name = process;
    if (w.judge.decide(w.set, c).kind != BH_VERDICT_ALLOW) FAIL("refused: " << i);
  }
}
Call of_principal(std::string_view principal, std::uint64_t session, std::string_view tool = "t") {
  Call out = in_session(session, tool);
  out.principal = principal;
  return out;
}

}  // namespace

TEST_CASE("a client with too many sessions loses its own counts, and does not affect others") {
  World w(limit(R"({"calls": 2, "per": "1h"})"));
  const Call limited = of_principal("bert", 1);
  for (int i = 0; i < 2; ++i) CHECK(w.decide(limited) == "allow");
  CHECK(w.decide(limited) == "block r");
  flood(w, "anna", Counters::kMaxCounts + 1000);
  // Other clients have their counts, and get new ones.
  CHECK(w.decide(limited) == "block r");
  for (const Call &fresh : {of_principal("bert", 2), of_principal("carl", 3)}) {
    for (int i = 0; i < 2; ++i) CHECK(w.decide(fresh) == "allow");
    CHECK(w.decide(fresh) == "block r");
  }
  // The client itself is still limited in its last sessions.
  const Call last = of_principal("anna", 1'000'000 + Counters::kMaxCounts + 1000);
  CHECK(w.decide(last) == "allow");
  CHECK(w.decide(last) == "block r");
}

TEST_CASE("a client that evicts counts does not renew its budgets by principal, process or tool") {
  for (const std::string_view by : {"principal", "process", "tool"}) {
    for (const std::string_view flooded : {"session", "process"}) {
      if (by == flooded) continue;
      INFO(by << " " << flooded);
      World w(rules(R"j({
        "kept": {"on": "mcp.request", "if": "mcp.request.tool_name == 'kept'", "decision": "block",
                 "over": {"calls": 1, "by": [")j" +
                    std::string(by) + R"j("]}},
        "many": {"on": "mcp.request", "if": "mcp.request.tool_name == 't'", "decision": "block",
                 "over": {"calls": 2, "by": [")j" +
                    std::string(flooded) + R"j("]}}})j"));
      CHECK(w.decide(of_principal("anna", 1, "kept")) == "allow");
      CHECK(w.decide(of_principal("anna", 1, "kept")) == "block kept");
      flood(w, "anna", Counters::kMaxCounts + 1000);
      CHECK(w.decide(of_principal("anna", 2, "kept")) == "block kept");
    }
  }
}

TEST_CASE("if no count can be evicted, calls that require a new count are blocked") {
  World w(limit(R"({"calls": 5, "per": "1m", "by": ["principal"]})"));
  for (std::size_t i = 0; i < Counters::kMaxCounts; ++i) {
    const std::string principal = std::to_string(i);
    if (w.decide(of_principal(principal, 1)) != "allow") FAIL("refused: " << i);
  }
  CHECK(w.decide(of_principal("anna", 1)) == "block r");
  CHECK(w.decide(of_principal("7", 1)) == "allow");
  w.steady += 200'000;  // unused counts expire
  CHECK(w.decide(of_principal("anna", 1)) == "allow");
}

TEST_CASE("a flood of process names does not evict another client's session counts") {
  World w(rules(R"j({
    "kept": {"on": "mcp.request", "if": "mcp.request.tool_name == 'kept'", "decision": "block",
             "over": {"calls": 1, "by": ["session"]}},
    "many": {"on": "mcp.request", "if": "mcp.request.tool_name == 't'", "decision": "block",
             "over": {"calls": 2, "by": ["process"]}}})j"));
  CHECK(w.decide(of_principal("bert", 1, "kept")) == "allow");
  flood(w, "anna", Counters::kMaxCounts + 1000);
  CHECK(w.decide(of_principal("bert", 1, "kept")) == "block kept");
}

TEST_CASE("if few counts can be evicted, limits hold for the sessions that have one") {
  World w(rules(R"j({
    "all": {"on": "mcp.request", "if": "mcp.request.tool_name == 't'", "decision": "block",
            "over": {"calls": 100, "by": ["principal"]}},
    "kept": {"on": "mcp.request", "if": "mcp.request.tool_name == 'kept'", "decision": "block",
             "over": {"calls": 1, "by": ["session"]}}})j"));
  CHECK(w.decide(of_principal("bert", 1, "kept")) == "allow");
  for (std::size_t i = 0; i + 1 < Counters::kMaxCounts; ++i) {
    w.decide(of_principal(std::to_string(i), 1));
  }
  CHECK(w.decide(of_principal("carl", 2, "kept")) == "block kept");  // no room for another count
  CHECK(w.decide(of_principal("bert", 1, "kept")) == "block kept");
}

TEST_CASE("the least recently used count of the principal with the most counts is evicted first") {
  EvictionOrder order;
  CHECK(order.next() == nullptr);
  const std::string keys[] = {"a1", "a2", "a3", "b1", "b2"};
  std::vector<EvictionOrder::Place> places;
  for (const std::string &key : keys) places.push_back(order.add(key.substr(0, 1), key));
  CHECK(order.next() == &keys[0]);
  EvictionOrder::use(places[0]);
  CHECK(order.next() == &keys[1]);
  order.remove(places[1]);
  order.remove(places[0]);
  CHECK(order.next() == &keys[3]);  // b has two counts, a has one
  order.remove(places[3]);
  order.remove(places[4]);
  CHECK(order.next() == &keys[2]);
  order.remove(places[2]);
  CHECK(order.next() == nullptr);
  order.add("b", keys[4]);
  CHECK(order.next() == &keys[4]);
}

TEST_CASE("invalid budgets are rejected") {
  has(bad(limit(R"({"calls": 0})")),
      "security.rules.mcp.r.over.calls: must be a number from 1 to ");
  has(bad(limit(R"({"destinations": 1001})")), "must be a number from 1 to 1000");
  has(bad(limit("{}")), "exactly one of calls, bytes and destinations");
  has(bad(limit(R"({"calls": 1, "bytes": 1})")), "exactly one of calls, bytes and destinations");
  for (const std::string_view per : {"1", "m", "1w", "32d", "0s", "-1m", "1.5m"}) {
    has(bad(limit(R"({"calls": 1, "per": ")" + std::string(per) + "\"}")), "at most 31 days");
  }
  has(bad(limit(R"({"calls": 1, "by": "user"})")), "is not a valid counting key");
  has(bad(limit(R"({"cals": 1})")), "did you mean \"calls\"?");
  has(bad(rules(R"({"r": {"on": "mcp.response", "if": "true", "decision": "block",
                          "over": {"calls": 1}}})")),
      "budgets apply only to requests");
}
