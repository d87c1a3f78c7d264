#include "uri.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

using bulkhead::rules::normalized_uri;

namespace {

struct Case {
  const char *uri, *normalized;
};

template <std::size_t N>
void check(const Case (&cases)[N]) {
  for (const Case &each : cases) {
    INFO(each.uri);
    const std::string normalized = normalized_uri(each.uri);
    CHECK(normalized == each.normalized);
    CHECK(normalized_uri(normalized) == normalized);
  }
}

}  // namespace

TEST_CASE("URIs that are equivalent according to RFC 3986 have the same normalized form") {
  check({{"", ""},
         {"file:///etc/passwd", "file:///etc/passwd"},
         {"FILE:///etc/passwd", "file:///etc/passwd"},
         {"file:///etc/./x/../passwd", "file:///etc/passwd"},
         {"file:///%65tc/p%61sswd", "file:///etc/passwd"},
         {"file:///a/%2e%2E/etc/passwd", "file:///etc/passwd"},
         {"file:///../../etc", "file:///etc"},
         {"file:///etc/..", "file:///"},
         {"file:///etc/.", "file:///etc/"},
         {"file:///a/b/../", "file:///a/"},
         {"file:///a/b/./", "file:///a/b/"},
         {"http://h/a/b/./", "http://h/a/b/"},
         {"file:///etc%2fpasswd", "file:///etc%2Fpasswd"},
         {"file:///%252e%252e/x", "file:///%252e%252e/x"},
         {"file://Server/A", "file://server/A"},
         {"HTTPS://EXAMPLE.com:8443/a/../b?X=%7e/../y", "https://example.com:8443/b?X=~/../y"},
         {"https://ex%41mple%2fx/", "https://example%2Fx/"},
         {"note:Team/./a/../b", "note:Team/b"},
         {"URN:Example:A", "urn:Example:A"},
         {"x:/..//host/a", "x:/.//host/a"},
         {"/a/../b", "/b"},
         {"a/../../b", "b"},
         {"1x:y", "1x:y"},
         {"example://a/b/c/%7Bfoo%7D", "example://a/b/c/%7Bfoo%7D"},
         {"eXAMPLE://a/./b/../b/%63/%7bfoo%7d", "example://a/b/c/%7Bfoo%7D"}});
}

TEST_CASE("URIs that URL parsers treat as equal have the same normalized form") {
  check({// Tabs and line ends anywhere, control characters and spaces at both ends.
         {"file:///e\ttc/pass\nwd", "file:///etc/passwd"},
         {"fi\tle:///etc/passwd", "file:///etc/passwd"},
         {"file:///a/.\t./etc/passwd", "file:///etc/passwd"},
         {"file:///a/%2\te./etc/passwd", "file:///etc/passwd"},
         {"file:///etc/passwd\r\n", "file:///etc/passwd"},
         {" \x01 file:///etc/passwd \x1f ", "file:///etc/passwd"},
         {"file:///etc/pass wd", "file:///etc/pass%20wd"},
         {"file:///etc/passwd%20", "file:///etc/passwd%20"},
         // Backslashes and extra slashes after the scheme.
         {"file:\\\\\\etc\\passwd", "file:///etc/passwd"},
         {"file:///x\\..\\etc/passwd", "file:///etc/passwd"},
         {"file:/etc/passwd", "file:///etc/passwd"},
         {"file:etc/passwd", "file:///etc/passwd"},
         {"file:////etc//passwd", "file:///etc/passwd"},
         {"file:///a//../b", "file:///b"},
         {"file:///a/%2e//..//b//", "file:///b/"},
         {"http://h/a//../b", "http://h/a/b"},
         {"http:\\\\example.com\\a", "http://example.com/a"},
         {"http:/example.com/a", "http://example.com/a"},
         {"http:example.com/a", "http://example.com/a"},
         {"http:///example.com/a", "http://example.com/a"},
         {"http://example.com/a//b", "http://example.com/a//b"},
         {"http://good.example\\@evil.example/", "http://good.example/@evil.example/"},
         {"note:a\\b", "note:a%5Cb"},
         // Hosts.
         {"file://localhost/etc/passwd", "file:///etc/passwd"},
         {"file://LOCAL%68ost/etc/passwd", "file:///etc/passwd"},
         {"http://EXAMPLE.com./", "http://example.com/"},
         {"http://2130706433/", "http://127.0.0.1/"},
         {"http://0x7f.1/", "http://127.0.0.1/"},
         {"http://0177.0.0.01/", "http://127.0.0.1/"},
         {"http://0x7f.0x.0X.0x1/", "http://127.0.0.1/"},
         {"http://0x/", "http://0.0.0.0/"},
         {"http://0xy/", "http://0xy/"},
         {"http://[2001:DB8:0:0::1]/", "http://[2001:db8::1]/"},
         {"http://[::1/", "http://[::1/"},
         {"memo://127.1", "memo://127.1"},
         // Users, ports and empty paths.
         {"https://user:pw@example.com/a", "https://example.com/a"},
         {"https://a@b@example.com/", "https://example.com/"},
         {"https://example.com:443/a", "https://example.com/a"},
         {"https://example.com:0443/a", "https://example.com/a"},
         {"https://example.com:/a", "https://example.com/a"},
         {"http://example.com:80", "http://example.com/"},
         {"http://example.com:443/", "http://example.com:443/"},
         {"http://[::1]:80/", "http://[::1]/"},
         {"ws://h:80", "ws://h/"},
         {"wss://h:443", "wss://h/"},
         {"ftp://h:21", "ftp://h/"},
         {"http://h:%38%30/", "http://h/"},
         {"http://u@/evil.example", "http://u@/evil.example"},
         {"http://../", "http://./"},
         {"./X:y", "./X:y"},
         {"http://example.com", "http://example.com/"},
         {"http://example.com?x", "http://example.com/?x"},
         {"file://server", "file://server/"},
         {"memo://Insights", "memo://insights"},
         {"memo://insights/", "memo://insights/"},
         // Queries and fragments.
         {"http://example.com/a?", "http://example.com/a"},
         {"http://example.com/a#b", "http://example.com/a"},
         {"http://example.com/a?b=%2d\\#c", "http://example.com/a?b=-%5C"},
         {"file:///etc/passwd?x#y", "file:///etc/passwd"},
         {"file:///etc/passwd#/../../srv", "file:///etc/passwd"},
         {"note:a?b#c", "note:a?b"},
         // Invalid characters are escaped. Percent escapes are decoded once.
         {"file:///caf\xC3\xA9", "file:///caf%C3%A9"},
         {"file:///caf%c3%a9", "file:///caf%C3%A9"},
         {"caf\xC3\xA9:x", "caf%C3%A9:x"},
         {"file:///{a}|<b>\"^`", "file:///%7Ba%7D%7C%3Cb%3E%22%5E%60"},
         {"file:///a%zz%4", "file:///a%25zz%254"},
         {"file:///%4%31", "file:///%2541"},
         {"file:///%00\x7f", "file:///%00%7F"},
         {"file:///a+b%2bc", "file:///a+b%2Bc"}});
}

TEST_CASE("a file URI is ambiguous if its query or fragment has parent segments") {
  for (const char *uri :
       {"file:///a#/../../b", "file:///a?/../../b", "file:///a?x=1/..", "FILE:/a#\\..\\b",
        "file:///a#/%2E./b", "/a#/../b", "a?/..", "file:///a#/.%2e", "file:///a#/.\t./b"}) {
    INFO(uri);
    CHECK(bulkhead::rules::is_ambiguous_uri(uri));
  }
  for (const char *uri : {"file:///a/../b", "file:///a#b..", "file:///a?..b", "file:///a#.../b",
                          "file:///a#", "http://h/a?/../b", "memo://a#/../b", "", "a#b"}) {
    INFO(uri);
    CHECK_FALSE(bulkhead::rules::is_ambiguous_uri(uri));
  }
}

TEST_CASE("normalizing is idempotent") {
  constexpr std::string_view parts[] = {
      "http:", "file:", "x:", "/",   "//",  "\\", "..",   ".", "@",   ":", "[",  "]", "?",
      "#",     "%",     "%2", "%2e", "%2F", "80", "0x7f", "A", "::1", " ", "\t", "é", "localhost"};
  std::uint32_t state = 1;
  for (int round = 0; round < 50'000; ++round) {
    std::string uri;
    for (int i = 0; i < 8; ++i) {
      state = state * 1'664'525 + 1'013'904'223;
      uri += parts[(state >> 16) % std::size(parts)];
    }
    const std::string once = normalized_uri(uri), twice = normalized_uri(once);
    if (once != twice) FAIL_CHECK(uri << " -> " << once << " -> " << twice);
  }
}
