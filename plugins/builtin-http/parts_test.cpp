// Addresses, URLs, the domain policy, and pages as text.
#include <catch2/catch.hpp>

#include "builtin-http/address.hpp"
#include "builtin-http/config.hpp"
#include "builtin-http/html_text.hpp"
#include "builtin-http/page.hpp"
#include "builtin-http/url.hpp"

using namespace builtin_http;

namespace {

std::string text_of(const std::string &html, bool markdown = true) {
  const std::atomic<bool> cancelled{false};
  std::string out;
  std::string problem;
  if (!html_to_text(html, markdown, cancelled, &out, &problem)) return "problem: " + problem;
  return out;
}

std::string url_problem(std::string_view text) {
  Url url;
  std::string problem;
  return parse_url(text, &url, &problem) ? "" : problem;
}

std::string url_text(std::string_view text) {
  Url url;
  std::string problem;
  return parse_url(text, &url, &problem) ? url.text() : "problem";
}

Config config(std::string_view json) {
  Config c;
  bh_error error = bh::make_error();
  const bh_status status = parse_config(json, &c, &error);
  INFO(bh::text(error));
  REQUIRE(status == BH_OK);
  return c;
}

}  // namespace

TEST_CASE("only addresses of the public Internet are public") {
  for (const char *a :
       {"1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.0.1", "172.32.0.1", "192.167.1.1",
        "169.253.1.1", "100.63.0.1", "100.128.0.1", "223.255.255.255", "2606:4700::1111",
        "2a00:1450:4001:81b::200e", "2002:0808:0808::1", "64:ff9b::808:808", "::ffff:8.8.8.8"}) {
    INFO(a);
    CHECK(is_public_address(a));
  }
  for (const char *a : {"127.0.0.1",
                        "127.8.8.8",
                        "0.0.0.0",
                        "10.0.0.1",
                        "172.16.0.1",
                        "172.31.255.255",
                        "192.168.1.1",
                        "169.254.169.254",
                        "100.64.0.1",
                        "100.100.100.200",
                        "168.63.129.16",
                        "192.0.0.192",
                        "192.0.2.1",
                        "198.18.0.1",
                        "224.0.0.1",
                        "240.0.0.1",
                        "255.255.255.255",
                        "::",
                        "::1",
                        "fe80::1",
                        "fe80::1%eth0",
                        "fc00::1",
                        "fd00:ec2::254",
                        "ff02::1",
                        "2001:db8::1",
                        "2001::1",
                        "::ffff:127.0.0.1",
                        "::ffff:10.0.0.1",
                        "::127.0.0.1",
                        "2002:7f00:1::",
                        "2002:0a00:1::",
                        "64:ff9b::7f00:1",
                        "64:ff9b::a9fe:a9fe",
                        "3fff::1",
                        "",
                        "localhost",
                        "1.2.3",
                        "0x7f.1",
                        "999.1.1.1"}) {
    INFO(a);
    CHECK_FALSE(is_public_address(a));
  }
}

TEST_CASE("URLs") {
  CHECK(url_text("http://example.com") == "http://example.com/");
  CHECK(url_text(" HTTPS://Example.COM:443/A?b#c ") == "https://example.com/A?b");
  CHECK(url_text("http://example.com.:8080?q") == "http://example.com:8080/?q");
  CHECK(url_text("http://[2001:DB8::1]:81/") == "http://[2001:db8::1]:81/");
  CHECK(url_text("http://1.2.3.4/") == "http://1.2.3.4/");
  CHECK(url_problem("") == "the argument \"url\" is missing");
  CHECK(url_problem("example.com").find("must begin with http://") != std::string::npos);
  CHECK(url_problem("ftp://example.com").find("scheme \"ftp\" is not supported") !=
        std::string::npos);
  CHECK(url_problem("file:///etc/passwd").find("scheme \"file\"") != std::string::npos);
  CHECK(url_problem("http://").find("has no host") != std::string::npos);
  CHECK(url_problem("http:///path").find("has no host") != std::string::npos);
  CHECK(url_problem("http://:80/").find("has no host") != std::string::npos);
  const std::string user = url_problem("http://user:secret@example.com/");
  CHECK(user.find("user name or password") != std::string::npos);
  CHECK(user.find("secret") == std::string::npos);
  for (const char *bad :
       {"http://a b/", "http://a\\b/", "http://a/\xC3\xA9", "http://ex%41mple.com/", "http://a:b/",
        "http://a:70000/", "http://a:0/", "http://[::1/", "http://[zz]/", "http://a..b/",
        "http://0x7f000001/", "http://127.1/", "http://2130706433/", "http://017700000001/",
        "http://127.0.0.1.5/", "http://.a/",
        "http://b\xC3\xBC"
        "cher.de/"}) {
    INFO(bad);
    CHECK(url_problem(bad).find("invalid URL") == 0);
  }
}

TEST_CASE("where a redirect leads") {
  Url base;
  std::string problem;
  REQUIRE(parse_url("https://a.test:8443/x/y/z?q=1", &base, &problem));
  const auto to = [&](std::string_view location) {
    Url url;
    return resolve_url(base, location, &url, &problem) ? url.text() : "problem";
  };
  CHECK(to("http://b.test/p") == "http://b.test/p");
  CHECK(to("//b.test/p") == "https://b.test/p");
  CHECK(to("/p?x#f") == "https://a.test:8443/p?x");
  CHECK(to("p") == "https://a.test:8443/x/y/p");
  CHECK(to("./p/") == "https://a.test:8443/x/y/p/");
  CHECK(to("../../../p") == "https://a.test:8443/p");
  CHECK(to("..") == "https://a.test:8443/x/");
  CHECK(to("?n") == "https://a.test:8443/x/y/z?n");
  CHECK(to("") == "https://a.test:8443/x/y/z?q=1");
  CHECK(to("/a/?u=http://c.test/") == "https://a.test:8443/a/?u=http://c.test/");
  CHECK(to("javascript:alert(1)") == "problem");
  CHECK(to("file:///etc/passwd") == "problem");
}

TEST_CASE("the domain policy: block, allow, default") {
  const Config c = config(
      R"({"allow":["good.test","*.a.test","Both.test"],"block":["both.test","*.bad.a.test"]})");
  CHECK(c.refusal("good.test").empty());
  CHECK(c.refusal("x.a.test").empty());
  CHECK(c.refusal("x.y.a.test").empty());
  CHECK(c.refusal("a.test").find("blocked: it is not on the allow list") != std::string::npos);
  CHECK_FALSE(c.refusal("xa.test").empty());
  CHECK_FALSE(c.refusal("good.test.evil.test").empty());
  CHECK(c.refusal("both.test").find("blocked by the block list entry both.test") !=
        std::string::npos);
  CHECK_FALSE(c.refusal("x.bad.a.test").empty());
  CHECK(config("{}").refusal("any.test").empty());
  CHECK_FALSE(config(R"({"default":"deny"})").refusal("any.test").empty());
  CHECK(config(R"({"allow":["a.test"],"default":"allow"})").refusal("any.test").empty());
  Config ignored;
  for (const char *bad :
       {"[]", R"({"allow":"a"})", R"({"allow":["*"]})", R"({"block":["a*.b"]})",
        R"({"block":["http://a/"]})", R"({"default":"maybe"})", R"({"allow_private":1})",
        R"({"max_body_bytes":10})", R"({"timeout_ms":-1})"}) {
    INFO(bad);
    CHECK(parse_config(bad, &ignored, nullptr) == BH_E_INVALID);
  }
}

TEST_CASE("a page as Markdown") {
  CHECK(text_of("<h1>A  <b>b</b></h1><p>One\n two.<p>Three<br>four") ==
        "# A **b**\n\nOne two.\n\nThree\nfour\n");
  CHECK(text_of("<p>See <a href='http://x.test/a b(c)'>the <i>page</i></a>, <a>none</a>.") ==
        "See [the *page*](http://x.test/a%20b%28c%29), none.\n");
  CHECK(text_of("<ul><li>a<li>b<ul><li>c</ul></ul><ol><li>x<li>y</ol>") ==
        "- a\n- b\n  - c\n\n1. x\n2. y\n");
  CHECK(text_of("<p>a<pre>\n x\n\n  y\n</pre>b <code>c</code>") ==
        "a\n\n```\n x\n\n  y\n```\n\nb `c`\n");
  CHECK(text_of("<blockquote><p>a<p>b</blockquote>c<hr>d") == "> a\n>\n> b\n\nc\n\n---\n\nd\n");
  CHECK(text_of("<table><tr><th>a<th>b<tr><td>1<td>2</table>") == "a | b\n1 | 2\n");
  CHECK(text_of("<title>t</title><body><style>s</style><script>alert('x')</script>"
                "<noscript>n</noscript><svg><text>v</text></svg><template>t</template>text"
                "<img alt='a picture' src=x>") == "texta picture\n");
  CHECK(text_of("<a href='javascript:x'>y</a> <b> </b> <h2></h2><li></li>z") == "y\n\nz\n");
  CHECK(text_of("a<b> b </b>c") == "a **b** c\n");
  CHECK(text_of("<b>a<strong>b<i>c</i></strong> <code>d</code></b>") == "**ab*c* `d`**\n");
  CHECK(text_of("&lt;b&gt; &amp; &eacute;&nbsp;x") == "<b> & \xC3\xA9\xC2\xA0x\n");
  CHECK(text_of("").empty());
}

TEST_CASE("a page as plain text has no markup") {
  CHECK(text_of("<h1>A</h1><ul><li>a<li><b>b</b></ul><a href=x>y</a><pre>p\nq</pre>"
                "<blockquote>z</blockquote>",
                false) == "A\n\na\nb\n\ny\n\np\nq\n\nz\n");
}

TEST_CASE("pages made to hurt") {
  std::string deep;
  for (int i = 0; i < 20'000; ++i) deep += "<b><i>";
  CHECK(text_of(deep + "x").find('x') != std::string::npos);
  std::string nested;
  for (int i = 0; i < 200'000; ++i) nested += "<span>";
  CHECK(text_of(nested + "x") == "x\n");
  // Each <p> opens all the formatting elements again: the tree grows with the square of the page.
  std::string formatting = "<p>";
  for (int i = 0; i < 3'000; ++i) formatting += "<b id=" + std::to_string(i) + ">";
  for (int i = 0; i < 3'000; ++i) formatting += "</p><p>x";
  CHECK(text_of(formatting) == "problem: the page is too complex to be read");
  std::string quotes;
  for (int i = 0; i < 5'000; ++i) quotes += "<blockquote><ul><li>x<br>";
  CHECK(text_of(quotes).size() < 50 * 2 * 5'000);
  std::atomic<bool> cancelled{true};
  std::string out;
  std::string problem;
  CHECK_FALSE(html_to_text(deep, true, cancelled, &out, &problem));
  CHECK(problem == "the call was cancelled");
}

TEST_CASE("character sets") {
  const auto convert = [](std::string body, std::string_view type) {
    std::string out;
    std::string problem;
    return to_utf8(std::move(body), type, &out, &problem) ? out : "problem: " + problem;
  };
  CHECK(convert("\xC3\xA9", "text/html") == "\xC3\xA9");
  CHECK(convert("\xE9", "text/html") == "\xC3\xA9");
  CHECK(convert("\x80\x81\xFF", "text/plain; charset=\"ISO-8859-1\"") ==
        "\xE2\x82\xAC\xEF\xBF\xBD\xC3\xBF");
  CHECK(convert("\xC3\xA9", "text/plain; Charset=windows-1252") == "\xC3\x83\xC2\xA9");
  CHECK(convert("\xE9x", "text/plain; charset=utf-8") == "\xEF\xBF\xBDx");
  CHECK(convert("\xEF\xBB\xBFx", "text/plain; charset=latin1") == "x");
  CHECK(convert("<meta charset='iso-8859-1'>\xC3\xA9", "text/html") ==
        "<meta charset='iso-8859-1'>\xC3\x83\xC2\xA9");
  CHECK(convert("x", "text/html; charset=shift_jis").find("\"shift_jis\" is not supported") !=
        std::string::npos);
}
