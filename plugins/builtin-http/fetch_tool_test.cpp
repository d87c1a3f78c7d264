// Tests fetch_http. Also tests the rules, redirects, limits and records that all tools share.
#include <catch2/catch.hpp>

#include "builtin-http/testing.hpp"

using namespace builtin_http::testing;

TEST_CASE("a page is returned in three formats") {
  Web web;
  const std::string html =
      "<html><head><title>T</title><script>var hidden;</script></head><body><h1>Head</h1>"
      "<p>See <a href=\"http://b.test/\">this</a>.<ul><li>item</ul></body></html>";
  web.pages["http://a.test/"] = {.type = "text/html; charset=utf-8", .body = html};
  const Answer markdown = web.url("http://a.test/");
  CHECK_FALSE(markdown.is_error());
  CHECK(markdown.text() ==
        "URL: http://a.test/\nDomain: a.test\nContent length: 44\n\n"
        "# Head\n\nSee [this](http://b.test/).\n\n- item\n");
  const Answer content = web.fetch(R"("url":"http://a.test/","format":"content")");
  CHECK(chunk_of(content.text()) == "Head\n\nSee this.\n\nitem\n");
  const Answer raw = web.fetch(R"("url":"http://a.test/","format":"raw")");
  CHECK(chunk_of(raw.text()) == html);
}

TEST_CASE("the parts of a page are consecutive") {
  Web web;
  std::string text;
  while (text.size() < 12'000) text += "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  web.pages["http://a.test/"] = {.body = text};
  std::string read;
  int calls = 0;
  for (std::string next = "0"; !next.empty(); ++calls) {
    const Answer page = web.fetch(R"("url":"http://a.test/","start_index":)" + next);
    REQUIRE_FALSE(page.is_error());
    const std::string all = page.text();
    CHECK(all.find("Content length: " + std::to_string(text.size())) != std::string::npos);
    CHECK(all.find("\nShowing: " + next + "..") != std::string::npos);
    const std::string chunk = chunk_of(all);
    CHECK(chunk.size() <= 5000);
    CHECK(chunk.find("\xEF\xBF\xBD") == std::string::npos);
    read += chunk;
    const std::size_t at = all.find("start_index=");
    next = at == all.npos ? "" : all.substr(at + 12, all.find(' ', at) - at - 12);
  }
  CHECK(calls == 3);
  CHECK(read == text);
  // If max_length is smaller than one character, a whole character is returned.
  const Answer tiny = web.fetch(R"("url":"http://a.test/","start_index":1,"max_length":1)");
  CHECK(chunk_of(tiny.text()) == "\xC3\xA9");
  CHECK(
      error_of(web.fetch(R"("url":"http://a.test/","start_index":99999)")).find("beyond the end") !=
      std::string::npos);
}

TEST_CASE("each type of failure has its own error") {
  Web web;
  web.pages["http://a.test/pdf"] = {.type = "application/pdf", .body = "%PDF"};
  web.pages["http://a.test/png"] = {.type = "image/png", .body = "x"};
  web.pages["http://a.test/nul"] = {.body = std::string("a\0b", 3)};
  web.pages["http://a.test/404"] = {.status = 404};
  web.pages["http://a.test/cut"] = {.body = "x", .fails = BH_E_IO};
  CHECK(error_of(web.fetch("")) == "the argument \"url\" is missing");
  CHECK(error_of(web.url("not a url")).find("invalid URL") == 0);
  CHECK(error_of(web.url("ftp://a.test/")) ==
        "the scheme \"ftp\" is not supported; only http and https are");
  CHECK(error_of(web.url("http:///x")).find("has no host") != std::string::npos);
  CHECK(error_of(web.url("http://a.test/pdf")) ==
        "binary content (application/pdf) is not text; fetch_http with format \"raw\" returns it "
        "with invalid bytes replaced");
  CHECK(error_of(web.url("http://a.test/png")).find("image/png") != std::string::npos);
  CHECK(error_of(web.url("http://a.test/nul")).find("binary content") == 0);
  CHECK(error_of(web.url("http://a.test/404")) ==
        "the request failed: the server responded with status 404");
  CHECK(error_of(web.url("http://a.test/cut")) == "the request failed: the connection broke");
  CHECK(error_of(web.url("http://none.test/")) == "the request failed: no such host");
  CHECK(error_of(web.fetch(R"("url":"http://a.test/","format":"pdf")")).find("one of") !=
        std::string::npos);
  CHECK(error_of(web.fetch(R"("url":"http://a.test/","depth":1)")) == "unknown argument \"depth\"");
  const Answer raw = web.fetch(R"("url":"http://a.test/pdf","format":"raw")");
  CHECK(chunk_of(raw.text()) == "%PDF");
}

TEST_CASE("a blocked domain is not contacted") {
  Web web(R"({"block":["bad.test"],"allow":["*.a.test","bad.test"]})");
  web.pages["http://x.a.test/"] = {.body = "ok"};
  CHECK(chunk_of(web.url("http://x.a.test/").text()) == "ok");
  CHECK(error_of(web.url("http://a.test/")).find("blocked") != std::string::npos);
  CHECK(error_of(web.url("http://bad.test/")).find("blocked") != std::string::npos);
  CHECK(error_of(web.url("http://BAD.test./")).find("blocked") != std::string::npos);
  CHECK(web.asked.size() == 1);
}

TEST_CASE("private addresses are not contacted") {
  Web web;
  web.pages["http://inner.test/"] = {.body = "secret", .address = "10.0.0.5"};
  web.pages["http://meta.test/"] = {.body = "secret", .address = "169.254.169.254"};
  for (const char *url : {"http://127.0.0.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/"}) {
    CHECK(error_of(web.url(url)).find("is blocked: it is not a public") != std::string::npos);
  }
  CHECK(web.asked.empty());
  CHECK(error_of(web.url("http://inner.test/")).find("10.0.0.5") != std::string::npos);
  CHECK(error_of(web.url("http://meta.test/")).find("blocked") != std::string::npos);
  CHECK(web.connections == 0);
  CHECK((web.flags & BH_HTTP_NO_PROXY) != 0);

  Web open(R"({"allow_private":true})");
  open.pages["http://127.0.0.1:8080/"] = {.body = "ok", .address = "127.0.0.1"};
  CHECK(chunk_of(open.url("http://127.0.0.1:8080/").text()) == "ok");
  CHECK((open.flags & BH_HTTP_NO_PROXY) == 0);
}

TEST_CASE("the rules apply to each hop of a redirect") {
  Web web(R"({"block":["bad.test"]})");
  web.pages["http://a.test/1"] = {.status = 302, .body = "moved", .location = "/2"};
  web.pages["http://a.test/2"] = {.status = 301, .location = "https://b.test/page"};
  web.pages["https://b.test/page"] = {.body = "there"};
  const Answer there = web.url("http://a.test/1");
  CHECK(there.text().find("URL: https://b.test/page\nDomain: b.test\n") == 0);
  CHECK(chunk_of(there.text()) == "there");

  web.pages["http://a.test/bad"] = {.status = 307, .location = "http://bad.test/"};
  web.pages["http://a.test/local"] = {.status = 303, .location = "http://127.0.0.1/"};
  web.pages["http://a.test/inner"] = {.status = 308, .location = "http://inner.test/"};
  web.pages["http://inner.test/"] = {.body = "secret", .address = "192.168.0.1"};
  web.pages["http://a.test/file"] = {.status = 302, .location = "file:///etc/passwd"};
  web.pages["http://a.test/loop"] = {.status = 302, .location = "/loop"};
  web.asked.clear();
  CHECK(error_of(web.url("http://a.test/bad")).find("the domain bad.test is blocked") !=
        std::string::npos);
  CHECK(error_of(web.url("http://a.test/local")).find("127.0.0.1 is blocked") != std::string::npos);
  CHECK(web.asked.size() == 2);
  CHECK(error_of(web.url("http://a.test/inner")).find("192.168.0.1") != std::string::npos);
  CHECK(error_of(web.url("http://a.test/file")).find("scheme \"file\"") != std::string::npos);
  CHECK(error_of(web.url("http://a.test/loop")).find("more than 5 redirects") != std::string::npos);
}

TEST_CASE("a body above the limit is rejected before it is complete") {
  Web web(R"({"max_body_bytes":2048})");
  web.pages["http://a.test/"] = {.body = std::string(2048, 'x')};
  web.pages["http://a.test/big"] = {.body = std::string(2049, 'x')};
  CHECK_FALSE(web.url("http://a.test/").is_error());
  CHECK(error_of(web.url("http://a.test/big")) == "the content is larger than 2048 bytes");
}

TEST_CASE("if the HTTP client is missing, the call fails with the reason") {
  Web web("{}", false);
  CHECK(error_of(web.url("http://a.test/")).find("no HTTP client") != std::string::npos);
}

TEST_CASE("calls can be cancelled, and their number is limited") {
  Web web;
  web.silent = true;
  const std::string arguments = R"({"url":"http://a.test/"})";
  const bh_call call = web.begin("fetch_http", arguments);
  CHECK(web.open() == 1);
  web.cancel(call);
  CHECK(web.open() == 0);
  CHECK(error_of(web.wait(call)) == "the call was cancelled");
  for (int i = 0; i < 32; ++i) {
    web.begin("fetch_http", arguments);
    REQUIRE(web.status == BH_PENDING);
  }
  web.begin("fetch_http", arguments);
  CHECK(web.status == BH_E_LIMIT);
  web.stop();
  CHECK(web.open() == 0);
}

TEST_CASE("requests are recorded without their query") {
  Web web(R"({"block":["bad.test"]})");
  web.pages["http://a.test:8080/one?token=s3cret"] = {.status = 302,
                                                      .location = "https://b.test/two?x"};
  web.pages["https://b.test/two?x"] = {.body = "four"};
  web.url("http://a.test:8080/one?token=s3cret");
  REQUIRE(web.events.size() == 2);
  CHECK(web.events[0].starts_with(
      R"({"domain":"a.test","port":8080,"decision":"allowed","method":"GET","path":"/one",)"
      R"("status_code":302,"bytes_received":0,"duration_ms":)"));
  CHECK(web.events[1].starts_with(
      R"({"domain":"b.test","port":443,"decision":"allowed","method":"GET","path":"/two",)"
      R"("status_code":200,"bytes_received":4,"duration_ms":)"));
  for (const std::string &event : web.events) CHECK(event.find("s3cret") == std::string::npos);

  web.events.clear();
  web.url("http://bad.test/");
  REQUIRE(web.events.size() == 1);
  CHECK(web.events[0].find(R"("decision":"denied")") != std::string::npos);
  web.pages["http://in.test/"] = {.address = "10.0.0.1"};
  web.url("http://in.test/");
  REQUIRE(web.events.size() == 2);
  CHECK(web.events[1].find(R"("decision":"denied")") != std::string::npos);
  web.url("http://nowhere.test/");
  REQUIRE(web.events.size() == 3);
  CHECK(web.events[2].find(R"("decision":"error")") != std::string::npos);
  web.url("http://a.test/" + std::string(5000, 'x'));
  REQUIRE(web.events.size() == 4);
  CHECK(web.events[3].size() <= BH_EVENT_BYTES);
}
