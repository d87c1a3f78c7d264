// Tests the message scanner: the ranges that it locates, the messages that it rejects, and that it
// leaves all bytes unchanged.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "mcp/random_json.hpp"
#include "mcp/scan.hpp"

using namespace bulkhead::mcp;
using bulkhead::mcp::testing::RandomJson;

namespace {

struct Outcome {
  bool ok = false;
  Scan scan;
  ScanError error;
};

Outcome run(std::string_view message, const ScanLimits &limits = {}) {
  Outcome o;
  o.ok = scan(message, &o.scan, &o.error, limits);
  return o;
}

// Returns a request with additional members.
std::string request(const std::string &more) {
  return R"({"jsonrpc":"2.0","id":7,"method":"tools/call")" + more + "}";
}
std::string with_params(const std::string &params) {
  return request(",\"params\":" + params);
}

void check_refused(const std::string &message, std::int32_t code, std::string_view id) {
  const Outcome o = run(message);
  INFO(message << "\n" << o.error.what);
  CHECK_FALSE(o.ok);
  CHECK(o.error.code == code);
  CHECK(o.error.id.in(message) == id);
  CHECK(o.error.offset <= message.size());
  CHECK(*o.error.what != '\0');
}

void check_accepted(const std::string &message) {
  const Outcome o = run(message);
  INFO(message << "\n" << o.error.what);
  CHECK(o.ok);
}

}  // namespace

TEST_CASE("all ranges of a call are located") {
  const std::string m =
      R"( { "jsonrpc" : "2.0" , "id" : "a\u0062" , "method" : "tools/call", "extra": [1], )"
      R"("params" : { "name" : "x__y" , "arguments" : { "n" : 1e400 } , "uri":"u:1","cursor":"c",)"
      R"("_meta" : {"progressToken": 12 ,"other":{}}, "progressToken":"t", "requestId":5,)"
      R"("level":"info","elicitationId":"e","ref":{"type":"ref/prompt","name":"p","uri":"q"},)"
      R"("protocolVersion":"2025-06-18","capabilities":{"a":{}},"clientInfo":{"name":"c"}} } )";
  const Outcome o = run(m);
  INFO(o.error.what);
  REQUIRE(o.ok);
  const Scan &s = o.scan;
  CHECK(s.kind == Kind::request);
  CHECK(s.method == Method::tools_call);
  CHECK(s.id.in(m) == R"("a\u0062")");
  CHECK(s.method_text.in(m) == R"("tools/call")");
  CHECK(s.name.in(m) == R"("x__y")");
  CHECK(s.arguments.in(m) == R"({ "n" : 1e400 })");
  CHECK(s.uri.in(m) == R"("u:1")");
  CHECK(s.cursor.in(m) == R"("c")");
  CHECK(s.meta.in(m) == R"({"progressToken": 12 ,"other":{}})");
  CHECK(s.progress_token.in(m) == "12");
  CHECK(s.token.in(m) == R"("t")");
  CHECK(s.request_id.in(m) == "5");
  CHECK(s.level.in(m) == R"("info")");
  CHECK(s.elicitation_id.in(m) == R"("e")");
  CHECK(s.ref_type.in(m) == R"("ref/prompt")");
  CHECK(s.ref_name.in(m) == R"("p")");
  CHECK(s.ref_uri.in(m) == R"("q")");
  CHECK(s.protocol_version.in(m) == R"("2025-06-18")");
  CHECK(s.capabilities.in(m) == R"({"a":{}})");
  CHECK(s.client_info.in(m) == R"({"name":"c"})");
  CHECK(s.params.in(m).front() == '{');
  CHECK(s.params.in(m).back() == '}');
  CHECK(s.params.begin < s.name.begin);
  CHECK(s.params.end > s.client_info.end);
  CHECK_FALSE(s.modern);
  CHECK(s.result.empty());
  CHECK(s.error.empty());
}

TEST_CASE("unknown members of the envelope are dropped") {
  const struct {
    std::string from, to;
    std::uint32_t unknown;
  } cases[] = {
      {R"( {"x":{"id":1},"id" : 7,"jsonrpc":"2.0", "params" : {"a" : 1e400},"y":[],"method":"m"} )",
       R"({"jsonrpc":"2.0","id":7,"method":"m","params":{"a" : 1e400}})", 2},
      {R"({"jsonrpc":"2.0","\u0078":1,"method":"m"})", R"({"jsonrpc":"2.0","method":"m"})", 1},
      {R"({"jsonrpc":"2.0","id":"a","result":{"b" :1},"params":{"hidden":1},"_meta":{}})",
       R"({"jsonrpc":"2.0","id":"a","result":{"b" :1}})", 2},
      {R"({"jsonrpc":"2.0","id":null,"error":{"code":1},"params":[1]})",
       R"({"jsonrpc":"2.0","id":null,"error":{"code":1}})", 1},
      {R"({"jsonrpc":"2.0","error":{"code":1},"extra":1})",
       R"({"jsonrpc":"2.0","error":{"code":1}})", 1}};
  for (const auto &each : cases) {
    INFO(each.from);
    const Outcome o = run(each.from);
    REQUIRE(o.ok);
    CHECK(o.scan.unknown_members == each.unknown);
    const std::string left = without_dropped_members(each.from, o.scan);
    CHECK(left == each.to);
    const Outcome again = run(left);
    REQUIRE(again.ok);
    CHECK(again.scan.kind == o.scan.kind);
    CHECK(again.scan.unknown_members == 0);
  }
  CHECK(run(with_params(R"({"x":1,"y":2})")).scan.unknown_members == 0);
}

TEST_CASE("the kind of a message is detected") {
  const auto kind = [](const char *message) {
    const Outcome o = run(message);
    INFO(message << "\n" << o.error.what);
    REQUIRE(o.ok);
    return o.scan.kind;
  };
  CHECK(kind(R"({"jsonrpc":"2.0","id":1,"method":"ping"})") == Kind::request);
  CHECK(kind(R"({"method":"ping","id":"x","jsonrpc":"2.0","params":[1,{"name":1}]})") ==
        Kind::request);
  CHECK(kind(R"({"jsonrpc":"2.0","method":"notifications/initialized"})") == Kind::notification);
  CHECK(kind(R"({"jsonrpc":"2.0","id":1,"result":{"Name":1,"Name":2}})") == Kind::result);
  CHECK(kind(R"({"jsonrpc":"2.0","id":"1","error":{"code":1,"message":""}})") == Kind::error);
  CHECK(kind(R"({"jsonrpc":"2.0","id":null,"error":{}})") == Kind::error);
  CHECK(kind(R"({"jsonrpc":"2.0","error":{}})") == Kind::error);
  CHECK(kind(R"( [ {"jsonrpc":"2.0","method":"a"} , 1 ] )") == Kind::batch);
}

TEST_CASE("methods are recognized") {
  for (int i = static_cast<int>(Method::initialize);
       i <= static_cast<int>(Method::notifications_elicitation_complete); ++i) {
    const auto method = static_cast<Method>(i);
    const std::string m =
        R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(to_string(method)) + "\"}";
    CHECK(run(m).scan.method == method);
  }
  CHECK(run(R"({"jsonrpc":"2.0","id":1,"method":"tools\/call"})").scan.method ==
        Method::tools_call);
  CHECK(run(R"({"jsonrpc":"2.0","id":1,"method":"Tools/call"})").scan.method == Method::other);
  CHECK(run(R"({"jsonrpc":"2.0","id":1,"method":""})").scan.method == Method::other);
  CHECK(run(R"({"jsonrpc":"2.0","id":1,"method":"other"})").scan.method == Method::other);
  CHECK(run(R"({"jsonrpc":"2.0","id":1,"result":1})").scan.method == Method::none);
}

TEST_CASE("a modern request is detected by its protocol version in _meta") {
  const auto modern = [](const char *meta) {
    return run(with_params(std::string(R"({"_meta":)") + meta + "}")).scan.modern;
  };
  CHECK(modern(R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28"})"));
  CHECK(modern(R"({"io.modelcontextprotocol\/protocolVersion":"2026-07-28"})"));
  CHECK_FALSE(modern(R"({"io.modelcontextprotocol/other":"x"})"));
  CHECK_FALSE(modern("{}"));
}

TEST_CASE("the members of _meta that describe a request are located, each at most once") {
  const std::string meta = R"({"io.modelcontextprotocol/logLevel":"info","a":[],)"
                           R"("io.modelcontextprotocol\/clientCapabilities":{"roots":{}},)"
                           R"("io.modelcontextprotocol/clientInfo":{"name":"n"},)"
                           R"("io.modelcontextprotocol/protocolVersion":"v"})";
  const std::string text = with_params(R"({"_meta":)" + meta + "}");
  const auto good = run(text);
  REQUIRE(good.ok);
  CHECK(good.scan.modern);
  CHECK(good.scan.meta_revision.in(text) == R"("v")");
  CHECK(good.scan.meta_capabilities.in(text) == R"({"roots":{}})");
  CHECK(good.scan.meta_client_info.in(text) == R"({"name":"n"})");
  CHECK(good.scan.meta_log_level.in(text) == R"("info")");
  for (const char *name : {"protocolVersion", "clientCapabilities", "clientInfo", "logLevel"}) {
    INFO(name);
    const std::string key = "\"io.modelcontextprotocol/" + std::string(name) + "\"";
    const auto meta_of = [](const std::string &members) {
      return run(with_params(R"({"_meta":{)" + members + "}}"));
    };
    CHECK_FALSE(meta_of(key + ":{}," + key + ":{}").ok);
    std::string other = key;
    other[other.size() - 2] = static_cast<char>(other[other.size() - 2] - ('a' - 'A'));
    CHECK_FALSE(meta_of(other + ":{}").ok);
    // A member of the wrong type counts as missing, but protocolVersion sets `modern` even if its
    // type is wrong.
    const auto wrong = meta_of(key + ":7");
    REQUIRE(wrong.ok);
    CHECK(wrong.scan.modern == (std::string_view(name) == "protocolVersion"));
    CHECK(wrong.scan.meta_revision.empty());
    CHECK(wrong.scan.meta_capabilities.empty());
    CHECK(wrong.scan.meta_client_info.empty());
    CHECK(wrong.scan.meta_log_level.empty());
  }
}

TEST_CASE("the members of _meta that do not describe the request are counted") {
  const std::string revision = R"("io.modelcontextprotocol/protocolVersion":"v")";
  const std::string escaped = R"("io.modelcontextprotocol\/clientInfo":{})";
  const auto others = [](const std::string &members) {
    const auto outcome = run(with_params(R"({"_meta":{)" + members + "}}"));
    REQUIRE(outcome.ok);
    return outcome.scan.meta_others;
  };
  CHECK(others("") == 0);
  CHECK(others(revision) == 0);
  CHECK(others(revision + "," + escaped) == 0);
  CHECK(others(revision + R"(,"a":1,"a":2)") == 2);
  CHECK(others(R"("progressToken":1,"traceparent":"x",)" + revision) == 2);
}

TEST_CASE("members of results that are new in 2026-07-28 are located") {
  const auto text_of = [](const std::string &members) {
    return R"({"jsonrpc":"2.0","id":7,"result":{)" + members + "}}";
  };
  const std::string members =
      R"("requestState":"s","a":{"resultType":"x"},"inputRequests":{},"resultType":"input_required")";
  const std::string text = text_of(members);
  const auto found = run(text);
  REQUIRE(found.ok);
  CHECK(found.scan.request_state.in(text) == R"("requestState":"s")");
  CHECK(found.scan.input_requests.in(text) == R"("inputRequests":{})");
  CHECK(found.scan.result_type.in(text) == R"("resultType":"input_required")");
  CHECK_FALSE(found.scan.result_twice);
  CHECK_FALSE(found.scan.result_escapes);
  CHECK(run(text_of(R"("requestState":1,"requestState":2)")).scan.result_twice);
  CHECK(run(text_of(R"("inputRequests":{},"inputRequests":{})")).scan.result_twice);
  const auto escaped = run(text_of(R"("request\u0053tate":1)"));
  CHECK(escaped.scan.result_escapes);
  CHECK(escaped.scan.request_state.empty());
}

TEST_CASE("values with an unexpected type count as absent") {
  // The scanner does not validate the types of these members.
  const std::string m = with_params(
      R"({"name":5,"uri":null,"cursor":null,"level":3,"ref":7,"capabilities":[],"requestId":{}})");
  const Outcome o = run(m);
  REQUIRE(o.ok);
  CHECK(o.scan.name.empty());
  CHECK(o.scan.uri.empty());
  CHECK(o.scan.cursor.empty());
  CHECK(o.scan.level.empty());
  CHECK(o.scan.capabilities.empty());
  CHECK(o.scan.request_id.empty());
  check_refused(with_params(R"({"_meta":null})"), -32600, "7");
  check_refused(with_params("null"), -32600, "7");
  check_refused(with_params("\"a\""), -32600, "7");
}

TEST_CASE("a progress token is a string or an integer with a limited length") {
  const auto token = [](const std::string &value) {
    const std::string m = with_params(R"({"_meta":{"progressToken":)" + value + "}}");
    const Outcome o = run(m);
    INFO(m);
    REQUIRE(o.ok);
    CHECK(o.scan.bad_progress_token == o.scan.progress_token.empty());
    return std::string(o.scan.progress_token.in(m));
  };
  const std::string longest = "\"" + std::string(max_progress_token - 2, 't') + "\"";
  for (const std::string &good : {std::string("0"), std::string("-7"), std::string("\"\""),
                                  std::string("\"a\\u0062\""), std::string(258, '9'), longest}) {
    CHECK(token(good) == good);
  }
  for (const std::string &bad :
       {std::string("{}"), std::string(R"({"rm":"-rf"})"), std::string("[1]"), std::string("null"),
        std::string("true"), std::string("1.5"), std::string("1e3"), std::string(259, '9'),
        longest.substr(0, 2) + longest.substr(1)}) {
    CHECK(token(bad).empty());
  }
  CHECK_FALSE(run(with_params(R"({"_meta":{"x":{}}})")).scan.bad_progress_token);
}

TEST_CASE("unknown and extra params are counted for each method") {
  const auto call = [](const std::string &method, const std::string &params) {
    return R"({"jsonrpc":"2.0","id":7,"method":")" + method + R"(","params":)" + params + "}";
  };
  const struct {
    std::string method, params, extra, left;
    std::uint32_t unknown;
  } cases[] = {
      {"tools/call", R"({"name":"n","arguments":{"x":1},"_meta":{"y":1}})", "",
       R"({"name":"n","arguments":{"x":1},"_meta":{"y":1}})", 0},
      {"tools/call", R"({"\u006eame":"n","task":{"ttl":1}})", R"({"task":{"ttl":1}})",
       R"({"\u006eame":"n","task":{"ttl":1}})", 0},
      {"tools/call", R"({"x" : [1e400],"name" : "n","task":1,"uri":"u","\u0079":{}})",
       R"({"x":[1e400],"task":1,"uri":"u","\u0079":{}})", R"({"name":"n","task":1})", 3},
      {"prompts/get", R"({"name":"n","task":1,"level":"info"})", R"({"task":1,"level":"info"})",
       R"({"name":"n"})", 2},
      {"resources/read", R"({"uri":"u","name":"n","arguments":{}})",
       R"({"name":"n","arguments":{}})", R"({"uri":"u"})", 2},
      {"resources/subscribe", R"({"uri":"u","cursor":"c"})", R"({"cursor":"c"})", R"({"uri":"u"})",
       1},
      {"resources/unsubscribe", R"({"uri":"u"})", "", R"({"uri":"u"})", 0},
      {"completion/complete",
       R"({"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a"},"context":{}})", "",
       R"({"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a"},"context":{}})", 0},
      {"completion/complete", R"({"ref":{"type":"ref/prompt","name":"p","title":"t"},"z":1})",
       R"({"ref":{"type":"ref/prompt","name":"p","title":"t"},"z":1})",
       R"({"ref":{"type":"ref/prompt","name":"p","title":"t"}})", 1},
      {"completion/complete", R"({"ref":{"type":"ref/prompt","name":"p","uri":5}})",
       R"({"ref":{"type":"ref/prompt","name":"p","uri":5}})",
       R"({"ref":{"type":"ref/prompt","name":"p","uri":5}})", 0},
      // These members occur only when a client repeats a request.
      {"tools/call", R"({"name":"n","inputResponses":{"k":{}},"requestState":"s"})",
       R"({"inputResponses":{"k":{}},"requestState":"s"})",
       R"({"name":"n","inputResponses":{"k":{}},"requestState":"s"})", 0},
      {"resources/read", R"({"uri":"u","requestState":1})", R"({"requestState":1})",
       R"({"uri":"u","requestState":1})", 0},
      {"completion/complete", R"({"requestState":"s"})", R"({"requestState":"s"})", "{}", 1},
      {"tasks/get", R"({"taskId":"t","x":1})", R"({"x":1})", R"({"taskId":"t"})", 1},
      {"tasks/update", R"({"taskId":"t","inputResponses":{}})", R"({"inputResponses":{}})",
       R"({"taskId":"t","inputResponses":{}})", 0},
      {"tasks/cancel", R"({"taskId":"t","task":{}})", R"({"task":{}})", R"({"taskId":"t"})", 1},
      {"tools/call", R"({"name":"n","task":{}})", R"({"task":{}})", R"({"name":"n","task":{}})", 0},
      // Requests with these methods are not forwarded to servers, so their members are not checked.
      {"tools/list", R"({"x":1})", "", R"({"x":1})", 0},
      {"initialize", R"({"x":1})", "", R"({"x":1})", 0}};
  for (const auto &each : cases) {
    const std::string m = call(each.method, each.params);
    INFO(m);
    const Outcome o = run(m);
    REQUIRE(o.ok);
    CHECK(o.scan.unknown_params == each.unknown);
    CHECK(o.scan.extra_params == !each.extra.empty());
    CHECK(extra_params(m, o.scan) == each.extra);
    const std::string left = without_dropped_members(m, o.scan, true);
    const Outcome again = run(left);
    REQUIRE(again.ok);
    CHECK(again.scan.params.in(left) == each.left);
    CHECK(again.scan.unknown_params == 0);
    CHECK(run(without_dropped_members(m, o.scan)).scan.unknown_params == each.unknown);
  }
  const std::string m = call("completion/complete", R"({"argument":{"a":1},"context":[2]})");
  CHECK(run(m).scan.argument.in(m) == R"({"a":1})");
  CHECK(run(m).scan.context.in(m) == "[2]");
  const std::string task = call("tasks/result", R"({"taskId":"t","task":{"ttl":1}})");
  CHECK(run(task).scan.method == Method::tasks_result);
  CHECK(run(task).scan.task_id.in(task) == R"("t")");
  CHECK(run(task).scan.task.in(task) == R"({"ttl":1})");
  const std::string wrong = call("tasks/get", R"({"taskId":7,"task":true})");
  CHECK(run(wrong).scan.task_id.empty());
  CHECK(run(wrong).scan.task.empty());
  check_refused(with_params(R"({"taskid":"t"})"), -32600, "7");
  const std::string named = call("prompts/get", R"({"name":"n","a\n":1,"b":1,"c":1,"d":1})");
  CHECK(unknown_param_names(named, run(named).scan) == R"("a\n", "b", "c" and 1 more)");
  const std::string long_name =
      call("prompts/get", R"({"name":"n",")" + std::string(99, 'k') + R"(":1})");
  CHECK(unknown_param_names(long_name, run(long_name).scan).size() < 80);
  const std::string note = R"({"jsonrpc":"2.0","method":"tools/call","params":{"x":1}})";
  CHECK_FALSE(run(note).scan.extra_params);
  check_refused(with_params(R"({"name":"n","Task":1})"), -32600, "7");
}

TEST_CASE("only malformed trace members are dropped from _meta") {
  const std::string parent = R"("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")";
  const auto left = [](const std::string &meta, unsigned bad) {
    const std::string m = with_params(R"({ "name":"n", "_meta" : )" + meta + R"(,"a":1})");
    const Outcome o = run(m);
    INFO(m);
    REQUIRE(o.ok);
    CHECK(o.scan.bad_traces == bad);
    CHECK(o.scan.has_to_drop() == (bad != 0));
    const std::string rest = without_dropped_members(m, o.scan);
    const Outcome again = run(rest);
    REQUIRE(again.ok);
    CHECK_FALSE(again.scan.has_to_drop());
    CHECK(rest.find(R"({ "name":"n", "_meta" : {)") != rest.npos);
    CHECK(rest.find(R"(},"a":1})") != rest.npos);
    return std::string(again.scan.meta.in(rest));
  };
  CHECK(left(R"({"traceparent":)" + parent + R"(,"tracestate":"a=1","baggage":"k=v;p"})", 0) ==
        R"({"traceparent":)" + parent + R"(,"tracestate":"a=1","baggage":"k=v;p"})");
  CHECK(left(R"({"k" : 1,"traceparent":{"rm":"-rf"},"l":[2] })", 1) == R"({"k":1,"l":[2]})");
  CHECK(left(R"({"traceparent":"x","tracestate":1,"baggage":null})", 3) == "{}");
  CHECK(left(R"({"trace\u0070arent":"x","k":1})", 1) == R"({"k":1})");
  CHECK(left(R"({"tracestate":"vendor=a\/b","traceparent":"x"})", 1) ==
        R"({"tracestate":"vendor=a\/b"})");
  CHECK(left(R"({"baggage":"a=\u00e9","k":1})", 1) == R"({"k":1})");
  CHECK(left(R"({"baggage":"a=)" + std::string(9000, 'b') + R"(","k":1})", 1) == R"({"k":1})");
  CHECK(left(R"({"baggage":"\u0061=)" + std::string(9000, 'b') + R"(","k":1})", 1) == R"({"k":1})");
  // Names of trace members are case-sensitive, so these members are unrelated.
  CHECK(left(R"({"Traceparent":1,"BAGGAGE":{}})", 0) == R"({"Traceparent":1,"BAGGAGE":{}})");
  check_refused(with_params(R"({"_meta":{"baggage":"a=1","baggage":"b=1"}})"), -32600, "7");
}

TEST_CASE("envelope: invalid messages are rejected") {
  const std::string invalid[] = {"1",
                                 "\"a\"",
                                 "null",
                                 "[]",
                                 " [ ] ",
                                 "{}",
                                 R"({"jsonrpc":"2.0"})",
                                 R"({"method":"m"})",
                                 R"({"jsonrpc":"1.0","method":"m"})",
                                 R"({"jsonrpc":2.0,"method":"m"})",
                                 R"({"jsonrpc":"2.0","method":5})",
                                 R"({"jsonrpc":"2.0","method":"m","id":null})",
                                 R"({"jsonrpc":"2.0","method":"m","id":1.0})",
                                 R"({"jsonrpc":"2.0","method":"m","id":1e2})",
                                 R"({"jsonrpc":"2.0","method":"m","id":true})",
                                 R"({"jsonrpc":"2.0","method":"m","id":{}})",
                                 R"({"jsonrpc":"2.0","method":"m","id":[1]})",
                                 R"({"jsonrpc":"2.0","result":1})",
                                 R"({"jsonrpc":"2.0","id":null,"result":1})",
                                 R"({"jsonrpc":"2.0","id":1,"result":1,"error":{}})",
                                 R"({"jsonrpc":"2.0","id":1,"error":"text"})",
                                 R"({"jsonrpc":"2.0","id":1.5,"result":1})",
                                 R"({"jsonrpc":"2.0","method":"m","result":1})"};
  for (const std::string &message : invalid) check_refused(message, -32600, "");
  check_refused(R"({"jsonrpc":"1.0","method":"m","id":5})", -32600, "5");
  check_refused(R"({"id":"x","method":"m"})", -32600, "\"x\"");
  check_refused(R"({"id":"x","method":5,"jsonrpc":"2.0"})", -32600, "\"x\"");
  check_refused(R"({"jsonrpc":"2.0","id":3})", -32600, "3");
  check_refused(R"({"jsonrpc":"2.0","id":3,"method":"m","result":1})", -32600, "3");
  check_accepted(R"({"jsonrpc":"2.0","id":-123456789012345678901234567890,"method":"m"})");
  check_accepted(R"({"jsonrpc":"2.0","id":"","method":"m"})");
}

TEST_CASE("text that is not JSON is rejected") {
  for (const std::string message :
       {"", "  ", "{", "{\"jsonrpc\":\"2.0\"", "{]", "hello", R"({"jsonrpc":"2.0","method":"m"} x)",
        R"({"jsonrpc":"2.0","method":"m"}{})", "\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"method\":\"m\"}",
        R"([{"jsonrpc":"2.0","method":"m"})", R"([1,])",
        "{\"jsonrpc\":\"2.0\",\"method\":\"\xC0\x80\"}",
        R"({"jsonrpc":"2.0","id":1,"method":"m",})", R"({"jsonrpc":"2.0","id":01,"method":"m"})"}) {
    check_refused(message, -32700, "");
  }
  check_refused(request(",\"a\":\"\x01\""), -32700, "");
  CHECK(run("  {\"a\" 1}").error.offset == 7);
}

TEST_CASE("ambiguous names are rejected") {
  const std::string ambiguous[] = {
      // Envelope
      request(R"(,"method":"ping")"), request(R"(,"Method":"ping")"),
      request(R"(,"m\u0065thod":"ping")"), request(R"(,"jsonrpc":"2.0")"),
      request(R"(,"JSONRPC":"2.0")"), request(R"(,"Params":{})"),
      request(R"(,"params":{},"params":{})"), request(R"(,"PARAMS":{},"params":{})"),
      request(R"(,"Result":{})"), request(R"(,"Error":{})"), request(R"(,"x":1,"x":2)"),
      request(R"(,"x":1,"X":2)"), request(R"(,"x":1,"\u0058":2)"),
      request(",\"params\":{},\"param\xC5\xBF\":{}"), request(R"(,"param\u017f":{})"),
      request(R"(,"stra\u00dfe":1,"STRA\u00dfE":2)"),
      // params
      with_params(R"({"name":"a","name":"b"})"), with_params(R"({"name":"a","Name":"b"})"),
      with_params(R"({"Name":"a"})"), with_params(R"({"NAME":"a","name":"a"})"),
      with_params(R"({"n\u0061me":"a","name":"b"})"), with_params(R"({"N\u0061me":"b"})"),
      with_params(R"({"uri":"a","URI":"b"})"), with_params(R"({"Arguments":{}})"),
      with_params(R"({"arguments":{},"argument\u017F":{}})"),
      with_params("{\"argument\xC5\xBF\":{}}"), with_params(R"({"_Meta":{}})"),
      with_params(R"({"_meta":{},"_meta":{}})"), with_params(R"({"requestid":1})"),
      with_params(R"({"ProgressToken":1})"), with_params(R"({"clientinfo":{}})"),
      with_params(R"({"Ref":{}})"), with_params(R"({"my":1,"MY":1})"),
      with_params("{\"\xE2\x84\xAA\":1,\"k\":1}"), with_params(R"({"\u212a":1,"K":1})"),
      with_params("{\"to\xE2\x84\xAA"
                  "en\":1,\"TOKEN\":2}"),
      with_params("{\"progressTo\xE2\x84\xAA"
                  "en\":1}"),
      with_params(R"({"":1,"":2})"), with_params(R"({"a\/b":1,"A/B":2})"),
      with_params(R"({"\ud800":1,"\udfff":2})"),
      // ambiguous forms of known names in _meta and ref
      with_params(R"({"_meta":{"progressToken":1,"progressToken":2}})"),
      with_params(R"({"_meta":{"ProgressToken":1}})"),
      with_params("{\"_meta\":{\"progressTo\xE2\x84\xAA"
                  "en\":1}}"),
      with_params(R"({"_meta":{"IO.modelcontextprotocol/protocolVersion":""}})"),
      with_params(R"({"ref":{"type":"a","type":"b"}})"), with_params(R"({"ref":{"Type":"a"}})"),
      with_params(R"({"ref":{"name":"a","NAME":"b"}})"),
      with_params(R"({"ref":{"uri":"a","\u0075ri":"b"}})")};
  for (const std::string &message : ambiguous) check_refused(message, -32600, "7");
}

TEST_CASE("the error for a message with two ids has no id") {
  check_refused(request(R"(,"id":8)"), -32600, "");
  check_refused(request(R"(,"\u0069d":7)"), -32600, "");
  check_refused(request(R"(,"ID":8)"), -32600, "7");
}

TEST_CASE("similar but unambiguous names are accepted") {
  check_accepted(with_params(R"({"n\u0061me":"a"})"));
  check_accepted(with_params(R"({"arguments":{"Name":1,"name":2,"name":3}})"));
  check_accepted(with_params(R"({"_meta":{"a":1,"A":2,"a":3}})"));
  check_accepted(with_params(R"({"ref":{"x":1,"X":2,"x":3}})"));
  check_accepted(with_params(R"({"other":{"name":1,"name":2}})"));
  // Characters are folded only if scan.hpp lists them.
  check_accepted(with_params("{\"\xC3\xA9\":1,\"\xC3\x89\":2}"));
  check_accepted(with_params(R"({"a[":1,"a{":2,"@":3,"`":4,"Z":5,"[":6})"));
  check_accepted(with_params(R"({"a":1,"a\u0000":2,"aaaaaaaa":3,"aaaaaaaaa":4})"));
  check_accepted(with_params(R"({"Foo":1,"BAR":2})"));
  check_accepted(request(R"(,"trace":1,"Span":2)"));
  const std::string escaped = with_params(R"({"n\u0061me":"a"})");
  CHECK(run(escaped).scan.name.in(escaped) == R"("a")");
}

TEST_CASE("an id after an error is still found") {
  check_refused(R"({"jsonrpc":"2.0","method":"m","params":{"name":"a","Name":"b"},"id":"late"})",
                -32600, "\"late\"");
  check_refused(R"({"jsonrpc":"2.0","method":"m","params":5,"id":9})", -32600, "9");
}

TEST_CASE("the error for an invalid response has no id") {
  // The ID belongs to a request of the receiver. If the error had this ID, the peer could mistake
  // it for a response to one of its requests.
  check_refused(R"({"jsonrpc":"2.0","id":5,"result":1,"error":{}})", -32600, "");
  check_refused(R"({"jsonrpc":"2.0","id":5,"error":1})", -32600, "");
}

TEST_CASE("depth and number of members are limited") {
  const auto nested = [](unsigned levels) {
    return with_params("{\"arguments\":" + std::string(levels, '[') + std::string(levels, ']') +
                       "}");
  };
  CHECK(run(nested(1022), {.max_depth = 5000, .max_members = 256}).ok);
  CHECK_FALSE(run(nested(1023), {.max_depth = 5000, .max_members = 256}).ok);
  check_accepted(nested(126));
  check_refused(nested(127), -32600, "7");
  CHECK(run(nested(18), {.max_depth = 20, .max_members = 256}).ok);
  CHECK_FALSE(run(nested(19), {.max_depth = 20, .max_members = 256}).ok);
  CHECK_FALSE(run(with_params("{}"), {.max_depth = 1, .max_members = 256}).ok);
  CHECK(run(request(""), {.max_depth = 1, .max_members = 256}).ok);
  CHECK_FALSE(run(request(""), {.max_depth = 0, .max_members = 256}).ok);
  CHECK_FALSE(run(R"([1])", {.max_depth = 0, .max_members = 256}).ok);
  CHECK(run(with_params(R"({"_meta":{}})"), {.max_depth = 3, .max_members = 256}).ok);
  CHECK_FALSE(run(with_params(R"({"_meta":{}})"), {.max_depth = 2, .max_members = 256}).ok);

  const auto many = [](unsigned n) {
    std::string text = "{";
    for (unsigned i = 0; i < n; ++i) text += (i > 0 ? ",\"m" : "\"m") + std::to_string(i) + "\":0";
    return text + "}";
  };
  check_accepted(with_params(many(256)));
  check_refused(with_params(many(257)), -32600, "7");
  CHECK_FALSE(run(with_params(many(257)), {.max_depth = 128, .max_members = 100'000}).ok);
  CHECK_FALSE(run(with_params(many(5)), {.max_depth = 128, .max_members = 4}).ok);
  CHECK_FALSE(run(request(""), {.max_depth = 128, .max_members = 2}).ok);
  check_accepted(with_params("{\"arguments\":" + many(5000) + "}"));
  check_accepted(with_params("{\"_meta\":" + many(5000) + "}"));
}

TEST_CASE("splicing leaves all other bytes unchanged") {
  RandomJson random(42);
  for (int round = 0; round < 5000; ++round) {
    const std::string arguments = random.object(4);
    const std::string other = random.value(3);
    const std::string front = random.space() + "{" + random.space() + "\"jsonrpc\":\"2.0\"," +
                              random.space() + "\"other\":" + other + ",\"id\":" + random.space();
    const std::string middle =
        random.space() + ",\"method\":\"tools/call\",\"params\":{\"arguments\":" + random.space() +
        arguments + random.space() + ",\"name\":";
    const std::string back =
        random.space() + ",\"more\":" + random.value(3) + "}" + random.space() + "}";
    const std::string message = front + "99" + middle + "\"s__tool\"" + back;
    const Outcome o = run(message);
    INFO(message << "\n" << o.error.what);
    REQUIRE(o.ok);
    REQUIRE(o.scan.arguments.in(message) == arguments);
    REQUIRE(valid_json(o.scan.params.in(message)));
    std::string spliced = message.substr(0, o.scan.id.begin) + "12345678901234567890";
    spliced += message.substr(o.scan.id.end, o.scan.name.begin - o.scan.id.end) + "\"tool\"";
    spliced += message.substr(o.scan.name.end);
    REQUIRE(spliced == front + "12345678901234567890" + middle + "\"tool\"" + back);
    REQUIRE(run(spliced).ok);
  }
}
