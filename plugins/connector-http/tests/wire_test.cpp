// Tests the components that perform no I/O: URLs, events, JSON scans, error messages and proxy
// selection.
#include <catch2/catch.hpp>
#include <map>

#include "bulkhead/cpp/basics.hpp"
#include "definition.hpp"
#include "failure.hpp"
#include "peek.hpp"
#include "proxy_env.hpp"
#include "sse.hpp"
#include "url.hpp"

using namespace connector_http;

TEST_CASE("URLs are parsed") {
  std::string why;
  const auto url = parse_url("HTTP://Example.COM:8080/a/b?c=d#frag", &why);
  REQUIRE(url);
  CHECK_FALSE(url->tls);
  CHECK(url->host == "example.com");
  CHECK(url->port == 8080);
  CHECK(url->target == "/a/b?c=d");
  CHECK(url->authority() == "example.com:8080");
  CHECK(url->shown() == "http://example.com:8080/a/b");
  CHECK(parse_url("https://h", &why)->target == "/");
  CHECK(parse_url("https://h?x", &why)->target == "/?x");
  CHECK(parse_url("https://h:443/", &why)->authority() == "h");
  CHECK(parse_url("http://[::1]:9/", &why)->authority() == "[::1]:9");
  for (const char *bad : {"", "ftp://h/", "http://", "http:///x", "http://u:p@h/", "http://h:0/",
                          "http://h:65536/", "http://h:x/", "http://h/a b", "http://h/\r\nX: y",
                          "http://[::1", "http://h\\x/", "http://h\xC3\xA9/"}) {
    CHECK_FALSE(parse_url(bad, &why));
    CHECK_FALSE(why.empty());
  }
}

TEST_CASE("URL references are resolved") {
  std::string why;
  const Url base = *parse_url("http://h:1/a/b/sse?x=1", &why);
  const auto resolved = [&](const char *r) { return resolve_url(base, r, &why)->text(); };
  CHECK(resolved("/m?s=1") == "http://h:1/m?s=1");
  CHECK(resolved("m") == "http://h:1/a/b/m");
  CHECK(resolved("../m") == "http://h:1/a/m");
  CHECK(resolved("../../../m/.") == "http://h:1/m/");
  CHECK(resolved("?y=2") == "http://h:1/a/b/sse?y=2");
  CHECK(resolved("http://h:1/z") == "http://h:1/z");
  CHECK(resolved("//k/z") == "http://k/z");
  CHECK_FALSE(resolve_url(base, "file:///etc/passwd", &why));
  CHECK_FALSE(resolve_url(base, "/a\r\nb", &why));
  CHECK_FALSE(same_origin(base, *resolve_url(base, "//k/z", &why)));
}

namespace {

struct Read {
  std::vector<std::pair<std::string, std::string>> events;
  bool too_large = false;
};

Read read_events(SseParser *parser, std::string_view in, std::size_t step) {
  Read out;
  for (std::size_t from = 0; from < in.size() && !out.too_large; from += step) {
    // `part` is freed after each piece, so dangling views are detected.
    const std::string part(in.substr(from, step));
    std::size_t at = 0;
    SseEvent event;
    for (;;) {
      const SseParser::Step s = parser->next(part, &at, &event);
      if (s == SseParser::Step::event) {
        out.events.emplace_back(event.type, event.data);
        continue;
      }
      out.too_large = s == SseParser::Step::too_large;
      break;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("events are parsed as specified, even if they are split into pieces of any size") {
  const std::size_t step = GENERATE(1u, 2u, 3u, 5u, 16u, 1000u);
  SseParser parser;
  const std::string in =
      "\xEF\xBB\xBF: comment\n\nevent: endpoint\ndata: /m\n\ndata: a\ndata:b\r\ndata\r\n\r\n"
      "id: 7\r\rdata:  two spaces\r\rretry: 250\nretry: 9x\nid\n\nid: 8\ndata\n\nunknown: x\n\n"
      "event: lost\n\ndata: last\n\ndata: unfinished\n";
  const Read r = read_events(&parser, in, step);
  REQUIRE(r.events.size() == 5);
  CHECK(r.events[0] == std::pair<std::string, std::string>("endpoint", "/m"));
  CHECK(r.events[1] == std::pair<std::string, std::string>("", "a\nb\n"));
  CHECK(r.events[2].second == " two spaces");
  CHECK(r.events[3].second.empty());
  CHECK(r.events[4] == std::pair<std::string, std::string>("", "last"));
  CHECK(parser.last_event_id() == "8");
  CHECK(parser.retry_ms() == 250u);
  parser.restart();
  CHECK(read_events(&parser, "data: again\n\n", step).events.size() == 1);
  CHECK(parser.last_event_id() == "8");
}

TEST_CASE("an event above the limit is rejected, even if it is split into pieces of any size") {
  const std::size_t step = GENERATE(1u, 7u, 5000u);
  for (const std::string &in :
       {"data: " + std::string(101, 'x') + "\n\n", std::string("data: ") + std::string(2000, 'x'),
        "data: " + std::string(60, 'x') + "\ndata: " + std::string(60, 'x') + "\n\n",
        ":" + std::string(2000, 'c') + "\n"}) {
    SseParser parser(100);
    CHECK(read_events(&parser, in, step).too_large);
  }
  SseParser parser(100);
  const Read r = read_events(&parser, "data: " + std::string(100, 'x') + "\n\n", step);
  CHECK_FALSE(r.too_large);
  CHECK(r.events.size() == 1);
}

TEST_CASE("responses are distinguished from other messages") {
  CHECK(is_response(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  CHECK(is_response(R"( {"error":{"code":1},"id":1})"));
  CHECK_FALSE(is_response(R"({"method":"x","params":{"result":1}})"));
  CHECK_FALSE(is_response(R"({"params":{"result":1,"s":"}\""},"method":"x"})"));
  CHECK_FALSE(is_response(R"(["result"])"));
  CHECK_FALSE(is_response("{\"result"));
  CHECK(answers_a_request(R"({"id":"a","error":{}})"));
  CHECK_FALSE(answers_a_request(R"({"id":null,"error":{}})"));
  CHECK_FALSE(answers_a_request(R"({"error":{}})"));
  CHECK(answers(R"({"error":{},"id": 17 })", 17));
  CHECK(answers(R"({"id":17,"error":{"message":"cut at a lim)", 17));
  CHECK_FALSE(answers(R"({"id":17,"method":"x"})", 17));
  for (const char *other : {"18", "170", "1", "\"17\"", "17.0", "null"}) {
    CHECK_FALSE(answers(R"({"id":)" + std::string(other) + R"(,"error":{}})", 17));
  }
  CHECK(holds_response(R"( [{"method":"x"},{"id":1,"result":{}}])"));
  CHECK_FALSE(holds_response(R"([{"method":"x"},{"method":"y","params":{"result":1}}])"));
  CHECK_FALSE(holds_response("[]"));
  CHECK(holds_response(R"([{"method":"x"})"));  // malformed, so the receiver reports the error
  CHECK(mentions("no SESSION here", "session"));
  CHECK_FALSE(mentions("no sessio", "session"));
}

TEST_CASE("challenges and wait times are parsed") {
  const std::string_view c =
      R"(Bearer realm="r, scope=no", error="insufficient_scope", scope="a b", x=plain)";
  CHECK(challenge_parameter(c, "scope") == "a b");
  CHECK(challenge_parameter(c, "error") == "insufficient_scope");
  CHECK(challenge_parameter(c, "x") == "plain");
  CHECK(challenge_parameter(c, "y").empty());
  CHECK(retry_after_ms("3") == 3000);
  CHECK(retry_after_ms("99999999") == 3'600'000);
  CHECK(retry_after_ms("Wed, 21 Oct 2015 07:28:00 GMT") == 0);
}

namespace {
std::map<std::string, std::string> environment;
const char *lookup(const char *name) {
  const auto it = environment.find(name);
  return it == environment.end() ? nullptr : it->second.c_str();
}
bool proxied(const char *url) {
  return wants_proxy(*parse_url(url, nullptr), lookup);
}
}  // namespace

TEST_CASE("proxies from the environment are used as in curl, but never for loopback") {
  environment = {{"http_proxy", "http://p:3128"}, {"no_proxy", "example.com, .corp:81,10.0.0.1"}};
  CHECK(proxied("http://other.org/"));
  CHECK_FALSE(proxied("https://other.org/"));
  CHECK_FALSE(proxied("http://example.com/"));
  CHECK_FALSE(proxied("http://a.example.com:99/"));
  CHECK(proxied("http://notexample.com/"));
  CHECK_FALSE(proxied("http://a.corp:81/"));
  CHECK(proxied("http://a.corp/"));
  CHECK_FALSE(proxied("http://10.0.0.1/"));
  CHECK_FALSE(proxied("http://localhost:1/"));
  CHECK_FALSE(proxied("http://127.8.8.8/"));
  CHECK_FALSE(proxied("http://[::1]/"));
  CHECK(proxied("http://127.evil.org/"));
  environment = {{"HTTP_PROXY", "http://p:3128"}};
  CHECK_FALSE(proxied("http://other.org/"));
  environment = {{"ALL_PROXY", "http://p:3128"}, {"NO_PROXY", "*"}};
  CHECK_FALSE(proxied("http://other.org/"));
}

TEST_CASE("definitions are validated") {
  Definition d;
  bh_error e = bh::make_error();
  CHECK(parse_definition(R"({"type":"sse","url":"http://h/sse","headers":{"User-Agent":"u"}})", &d,
                         &e) == BH_OK);
  CHECK(d.http_sse_only);
  CHECK(d.has_user_agent);
  CHECK(d.headers == "User-Agent: u\r\n");
  for (const char *bad :
       {"", "[]", "{}", R"({"url":5})", R"({"type":"stdio","url":"http://h/"})",
        R"({"url":"http://h/","headers":[]})", R"({"url":"http://h/","headers":{"A":1}})",
        R"({"url":"http://h/","headers":{"A B":"x"}})", R"({"url":"http://h/","headers":{"":"x"}})",
        R"({"url":"http://h/","headers":{"Transfer-Encoding":"chunked"}})"}) {
    Definition other;
    CHECK(parse_definition(bad, &other, &e) == BH_E_INVALID);
  }
}
