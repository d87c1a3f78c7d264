// Tests the functions that split URLs.
#include <bulkhead/cpp/url.hpp>
#include <catch2/catch.hpp>

TEST_CASE("a URL is split into its parts") {
  const auto url = bh::split_url("Https://u:p@[fe80::1]:8443/a/b?c=d?e#f#g");
  REQUIRE(url);
  CHECK(url->scheme == "Https");
  CHECK(url->authority == "u:p@[fe80::1]:8443");
  CHECK(url->has_credentials);
  CHECK(url->credentials == "u:p");
  CHECK(url->in_brackets);
  CHECK(url->host == "fe80::1");
  CHECK(url->port == "8443");
  CHECK(url->path == "/a/b");
  CHECK(url->query == "c=d?e");
  CHECK(url->target() == "/a/b?c=d?e");
  CHECK(url->fragment == "f#g");

  const auto least = bh::split_url("http://h");
  REQUIRE(least);
  CHECK(least->host == "h");
  CHECK_FALSE(least->has_port);
  CHECK_FALSE(least->has_credentials);
  CHECK(least->target().empty());
  CHECK(bh::split_url("http://h?x")->target() == "?x");
  CHECK(bh::split_url("http://h/?")->target() == "/?");
  CHECK(bh::split_url("http://h#/x@y:1")->host == "h");
  CHECK(bh::split_url("http://h/x@y:1")->host == "h");
}

TEST_CASE("the host is between the last at sign and the next colon") {
  CHECK(bh::split_url("http://a@b@c:1")->host == "c");
  CHECK(bh::split_url("http://a@b@c:1")->credentials == "a@b");
  CHECK(bh::split_url("http://h:1:2")->port == "1:2");
  CHECK(bh::port_of(*bh::split_url("http://h:1:2")) == 0);
  CHECK(bh::split_url("http://:80")->host.empty());
}

TEST_CASE("text that is not an absolute URL is rejected") {
  for (const char *bad : {"", "h", "://h", "/a://h", "?a://h", "http:/h", "http://[::1",
                          "http://[::1]x", "http://::1]", "http://a[b]"}) {
    CAPTURE(bad);
    CHECK_FALSE(bh::split_url(bad));
  }
}

TEST_CASE("ports are parsed or taken from the scheme") {
  const auto port = [](const char *url) { return bh::port_of(*bh::split_url(url)); };
  CHECK(port("http://h") == 80);
  CHECK(port("https://h:/") == 443);
  CHECK(port("http://[::1]:65535/") == 65535);
  CHECK(port("ftp://h") == 0);
  CHECK(port("ftp://h:21") == 21);
  for (const char *bad :
       {"http://h:0", "http://h:65536", "http://h:-1", "http://h:8o", "http://h:+1"}) {
    CAPTURE(bad);
    CHECK(port(bad) == 0);
  }
}
