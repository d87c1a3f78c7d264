// Tests URL parsing and redirect targets.
#include "builtin-http/url.hpp"

#include <catch2/catch.hpp>

using namespace builtin_http;

namespace {

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

}  // namespace

TEST_CASE("URLs are parsed and normalized") {
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
       {"http://a b/", "http://a\\b/", "http://ex%41mple.com/", "http://a:b/", "http://a:70000/",
        "http://a:0/", "http://[::1/", "http://[zz]/", "http://a..b/", "http://0x7f000001/",
        "http://127.1/", "http://2130706433/", "http://017700000001/", "http://127.0.0.1.5/",
        "http://.a/", "http://\xFF.test/", "http://\xE2\x98\x83\xE2\x80\x8B./"}) {
    INFO(bad);
    CHECK(url_problem(bad).find("invalid URL") == 0);
  }
}

TEST_CASE("redirect targets are resolved") {
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

TEST_CASE("non-ASCII names and paths are encoded") {
  CHECK(url_text("https://B\xC3\x9C"
                 "CHER.example/\xC3\xBC?q=\xC3\xA9#x") ==
        "https://xn--bcher-kva.example/%C3%BC?q=%C3%A9");
  // IDNA 2003 would map this name to fass.de.
  CHECK(url_text("http://fa\xC3\x9F.de/") == "http://xn--fa-hia.de/");
  CHECK(url_text("http://xn--bcher-kva.example/") == "http://xn--bcher-kva.example/");
  // Full-width digits and dots are parsed as the digits and dots of an IPv4 address.
  Url url;
  std::string problem;
  REQUIRE(
      parse_url("http://\xEF\xBC\x91\xEF\xBC\x92\xEF\xBC\x97\xE3\x80\x82"
                "0.0.1/",
                &url, &problem));
  CHECK(url.host.name == "127.0.0.1");
  CHECK(url.host.is_address);
}
