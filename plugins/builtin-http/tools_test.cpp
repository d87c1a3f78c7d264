// Tests the tool list and all tools except fetch_http.
#include <catch2/catch.hpp>
#include <set>

#include "builtin-http/testing.hpp"

using namespace builtin_http::testing;

namespace {

// Returns the annotations of the listed tools, keyed by tool name.
std::map<std::string, std::string> listed(Web *web) {
  rapidjson::Document list;
  const std::string json = web->list();
  list.Parse(json.data(), json.size());
  REQUIRE(list.IsArray());
  std::map<std::string, std::string> out;
  for (const auto &tool : list.GetArray()) {
    const auto &hints = tool["annotations"];
    for (const char *hint :
         {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}) {
      CHECK(hints[hint].IsBool());
    }
    CHECK(std::string(hints["title"].GetString()) == tool["title"].GetString());
    CHECK(tool["description"].GetStringLength() > 20);
    CHECK(std::string(tool["inputSchema"]["type"].GetString()) == "object");
    CHECK(tool["inputSchema"]["additionalProperties"].IsFalse());
    if (std::string(tool["name"].GetString()) != "echo") {
      CHECK(std::string(tool["outputSchema"]["type"].GetString()) == "object");
      for (const auto &name : tool["outputSchema"]["required"].GetArray())
        CHECK(tool["outputSchema"]["properties"].HasMember(name));
    }
    for (const auto &p : tool["inputSchema"]["properties"].GetObject())
      CHECK(p.value.HasMember("type"));
    out[tool["name"].GetString()] =
        std::string(hints["readOnlyHint"].GetBool() ? "reads" : "writes") +
        (hints["destructiveHint"].GetBool() ? " destroys" : "") +
        (hints["idempotentHint"].GetBool() ? " again" : "");
  }
  return out;
}

}  // namespace

TEST_CASE("the configured tools are listed with their annotations") {
  Web web;
  CHECK(listed(&web) == std::map<std::string, std::string>{{"echo", "reads again"},
                                                           {"fetch_http", "reads again"},
                                                           {"grep_http", "reads again"},
                                                           {"http_headers", "reads again"}});
  Web all(R"({"methods":["get","post","put","patch","delete","head"]})");
  const auto tools = listed(&all);
  CHECK(tools.size() == 10);
  CHECK(tools.at("http_get") == "reads again");
  CHECK(tools.at("http_head") == "reads again");
  CHECK(tools.at("http_post") == "writes destroys");
  CHECK(tools.at("http_patch") == "writes destroys");
  CHECK(tools.at("http_put") == "writes destroys again");
  CHECK(tools.at("http_delete") == "writes destroys again");
  web.list(BH_LIST_RESOURCES);
  CHECK(web.status == BH_E_UNSUPPORTED);
  for (const char *name : {"http_post", "http_trace", "fetch", ""}) {
    web.begin(name, R"({"url":"http://a.test/"})");
    CHECK(web.status == BH_E_NOT_FOUND);
  }
  web.drain();
  web.begin("fetch_http", R"({"url":"http://a.test/"})");
  CHECK(web.status == BH_E_UNAVAILABLE);
}

TEST_CASE("echo returns its text and requires the argument") {
  Web web("{}", false);
  CHECK(web.call("echo", R"({"text":"a\u0000\ud83d\ude00\"b"})").text() ==
        std::string("a\0\xf0\x9f\x98\x80\"b", 8));
  CHECK(error_of(web.call("echo", "{}")) == "the argument \"text\" is missing");
  CHECK(web.call("echo", R"({"text":1})").is_error());
  CHECK(web.call("echo", R"({"text":"a","more":1})").is_error());
}

TEST_CASE("D03 grep_http shows 50 of 60 hits") {
  Web web;
  std::string page = "<body>";
  for (int i = 1; i <= 60; ++i) page += "<p>Hit " + std::to_string(i) + "<div>other</div>";
  web.pages["http://a.test/"] = {.type = "text/html", .body = page};
  const auto grep = [&](const std::string &more) {
    return web.call("grep_http", R"({"url":"http://a.test/",)" + more + "}");
  };
  const std::string text =
      grep(R"("pattern":"hit \\d+","context_lines":1,"max_length":100000)").text();
  CHECK(text.find("URL: http://a.test/\nPattern: hit \\d+\nMatches found: more than 50\n"
                  "(showing the first 50)\n\n--- Match 1 ---\n>>> 1: Hit 1\n    2: \n\n") == 0);
  CHECK(text.find("--- Match 50 ---") != std::string::npos);
  CHECK(text.find("--- Match 51 ---") == std::string::npos);
  // HTML markup is searched only if `raw` is set.
  CHECK(grep(R"("pattern":"<p>")").text().find("Matches found: 0\n") != std::string::npos);
  CHECK(grep(R"("pattern":"<p>hit 60","raw":true)").text().find("Matches found: 1\n") !=
        std::string::npos);
  CHECK(error_of(grep(R"("pattern":"[")")).find("invalid regular expression") == 0);
  CHECK(error_of(grep(R"("pattern":"")")).find("must not be empty") != std::string::npos);
  CHECK(error_of(web.call("grep_http", R"({"pattern":"x"})")).find("\"url\" is missing") !=
        std::string::npos);
}

TEST_CASE("grep_http returns its result in parts") {
  Web web;
  std::string page;
  for (int i = 0; i < 300; ++i) page += "line with a word\n";
  web.pages["http://a.test/"] = {.body = page};
  std::string whole =
      web.call(
             "grep_http",
             R"({"url":"http://a.test/","pattern":"word","max_matches":300,"max_length":1000000})")
          .text();
  std::string read;
  for (std::string next = "0"; !next.empty();) {
    const std::string arguments =
        R"({"url":"http://a.test/","pattern":"word","max_matches":300,"start_index":)" + next + "}";
    std::string text = web.call("grep_http", arguments).text();
    const std::string hint = "Use start_index=";
    const std::size_t at = text.find(hint);
    next = at == text.npos
               ? ""
               : text.substr(at + hint.size(), text.find(' ', at + 6) - at - hint.size());
    read += next.empty() ? text : chunk_of(text);
  }
  CHECK(read == whole);
}

TEST_CASE("D04 http_headers uses HEAD, or GET without reading the body") {
  Web web;
  web.pages["http://a.test/"] = {.status = 404,
                                 .type = "image/png",
                                 .body = std::string(9'000'000, 'x'),
                                 .headers = {{"X-One", "1"}, {"X-Two", "caf\xC3\xA9"}}};
  const std::string head = web.call("http_headers", R"({"url":"http://a.test/"})").text();
  CHECK(web.method == "HEAD");
  CHECK(head ==
        "URL: http://a.test/\nStatus: 404 Not Found\n\nHeaders:\n  Content-Type: image/png\n"
        "  X-One: 1\n  X-Two: <binary>\n");
  web.stalls = true;  // the call must not wait for the body, which never arrives
  CHECK(web.call("http_headers", R"({"url":"http://a.test/","method":"GET"})").text() == head);
  CHECK(web.method == "GET");
  CHECK(error_of(web.call("http_headers", R"({"url":"http://a.test/","method":"PUT"})"))
            .find("one of: HEAD, GET") != std::string::npos);
  web.stalls = false;
  const std::string part =
      web.call("http_headers", R"({"url":"http://a.test/","max_length":30})").text();
  CHECK(part == "URL: http://a.test/\nStatus: 40\nUse start_index=30 to continue.\n");
}

TEST_CASE("D05 http_post and similar tools send the arguments that they receive") {
  Web web(R"({"methods":["get","post","put","patch","delete","head"]})");
  web.pages["http://a.test/x"] = {.status = 409, .type = "application/json", .body = R"({"a":1})"};
  for (const char *method : {"post", "put", "patch", "delete"}) {
    const Answer answer = web.call(
        std::string("http_") + method,
        R"({"url":"http://a.test/x","body":"{\"b\":2}","headers":{"Content-Type":"application/json"}})");
    CHECK_FALSE(answer.is_error());
    std::string upper = method;
    for (char &c : upper) c = static_cast<char>(c - 32);
    CHECK(web.method == upper);
    CHECK(web.sent == R"({"b":2})");
    CHECK(web.sent_headers.find("Content-Type: application/json\n") != std::string::npos);
    CHECK(answer.text() ==
          "URL: http://a.test/x\nStatus: 409 Conflict\n\nHeaders:\n"
          "  Content-Type: application/json\n\nContent length: 7\n\n{\"a\":1}");
  }
  CHECK(web.call("http_get", R"({"url":"http://a.test/x"})").text().find("{\"a\":1}") !=
        std::string::npos);
  CHECK(web.call("http_head", R"({"url":"http://a.test/x"})").text().find("Content length: 0\n") !=
        std::string::npos);
  CHECK(error_of(web.call("http_get", R"({"url":"http://a.test/x","body":"x"})")) ==
        "unknown argument \"body\"");
  CHECK(error_of(web.call("http_get", R"({"url":"http://a.test/x","headers":{"A":1}})")) ==
        "the header \"A\" must be a string");
  CHECK(error_of(web.call("http_get", R"({"url":"http://a.test/x","headers":["A"]})"))
            .find("must be an object") != std::string::npos);
}

TEST_CASE("methods with side effects do not follow redirects") {
  Web web(R"({"methods":["get","post"]})");
  web.pages["http://a.test/"] = {.status = 307, .location = "http://b.test/"};
  web.pages["http://a.test/own"] = {.status = 302, .location = "/end"};
  web.pages["http://a.test/end"] = {.body = "end"};
  web.pages["http://b.test/"] = {.body = "there"};
  const std::string moved = web.call("http_post", R"({"url":"http://a.test/","body":"x"})").text();
  CHECK(moved.find("Status: 307 Temporary Redirect") != std::string::npos);
  CHECK(moved.find("LOCATION: http://b.test/") != std::string::npos);
  CHECK(web.asked == std::vector<std::string>{"http://a.test/"});
  // Headers are not sent to another origin after a redirect.
  const std::string headers = R"("headers":{"Authorization":"Bearer s3cret"}})";
  web.call("http_get", R"({"url":"http://a.test/own",)" + headers);
  CHECK(web.asked.back() == "http://a.test/end");
  CHECK(web.sent_headers.find("s3cret") != std::string::npos);
  web.call("http_get", R"({"url":"http://a.test/",)" + headers);
  CHECK(web.asked.back() == "http://b.test/");
  CHECK(web.sent_headers.find("s3cret") == std::string::npos);
}

TEST_CASE("calls report progress after one second") {
  Web web;
  web.silent = true;
  const bh_call call = web.begin("fetch_http", R"({"url":"http://a.test/"})", BH_CALL_PROGRESS);
  REQUIRE(web.host.run_until([&] { return web.progress.size() == 2; }, 10'000));
  CHECK(web.progress == std::vector<double>{1, 2});
  web.cancel(call);
  CHECK(error_of(web.wait(call)) == "the call was cancelled");
  CHECK(web.host.timers() == 0);
  web.begin("fetch_http", R"({"url":"http://a.test/"})");  // without a progress token
  CHECK(web.host.timers() == 0);
}

TEST_CASE("a call that is cancelled during conversion is completed immediately") {
  Web web;
  std::string slow = "<p>";  // the tree size grows with the square of the page size
  for (int i = 0; i < 3'000; ++i) slow += "<b id=" + std::to_string(i) + ">";
  for (int i = 0; i < 3'000; ++i) slow += "</p><p>x";
  web.pages["http://a.test/"] = {.type = "text/html", .body = slow};
  const bh_call call = web.begin("fetch_http", R"({"url":"http://a.test/"})");
  REQUIRE(web.host.run_until([&] { return web.events.size() == 1; }, 10'000));
  for (int turn = 0; turn < 3; ++turn) web.host.run_until([] { return false; }, 0);
  web.cancel(call);
  CHECK(error_of(web.wait(call)) == "the call was cancelled");
}

TEST_CASE("text and structuredContent agree") {
  Web web(R"({"methods":["get"]})");
  web.pages["http://a.test/"] = {.type = "text/plain", .body = "one\ntwo \xC3\xA9\nthree"};
  const Answer fetched =
      web.call("fetch_http", R"({"url":"http://a.test/","start_index":4,"max_length":5})");
  CHECK(fetched.structured()["url"] == "http://a.test/");
  CHECK(fetched.structured()["content_length"].GetInt() == 16);
  CHECK(fetched.structured()["start_index"].GetInt() == 4);
  CHECK(fetched.structured()["next_start_index"].GetInt() == 8);
  CHECK(fetched.structured()["text"] == "two ");
  const Answer all = web.call("fetch_http", R"({"url":"http://a.test/"})");
  CHECK_FALSE(all.structured().HasMember("next_start_index"));
  const Answer found =
      web.call("grep_http", R"({"url":"http://a.test/","pattern":"t","max_length":1})");
  CHECK(found.structured()["more"].IsFalse());
  REQUIRE(found.structured()["matches"].Size() == 2);
  CHECK(found.structured()["matches"][1]["line"].GetInt() == 3);
  CHECK(found.structured()["matches"][1]["text"] == "three");
  const Answer head = web.call("http_headers", R"({"url":"http://a.test/"})");
  CHECK(head.structured()["status"].GetInt() == 200);
  CHECK(head.structured()["headers"][0]["name"] == "Content-Type");
  CHECK(head.structured()["headers"][0]["value"] == "text/plain");
  const Answer got = web.call("http_get", R"({"url":"http://a.test/","max_length":3})");
  CHECK(got.structured()["status"].GetInt() == 200);
  CHECK(got.structured()["body"] == "one");
  CHECK(got.structured()["next_start_index"].GetInt() == 3);
}
