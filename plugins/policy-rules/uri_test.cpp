#include "uri.hpp"

#include <catch2/catch.hpp>

using bulkhead::rules::normalized_uri;

TEST_CASE("URIs that RFC 3986 calls the same have one spelling") {
  const struct {
    const char *uri, *normalized;
  } cases[] = {{"", ""},
               {"file:///etc/passwd", "file:///etc/passwd"},
               {"FILE:///etc/passwd", "file:///etc/passwd"},
               {"file:///etc/./x/../passwd", "file:///etc/passwd"},
               {"file:///%65tc/p%61sswd", "file:///etc/passwd"},
               {"file:///a/%2e%2E/etc/passwd", "file:///etc/passwd"},
               {"file:///../../etc", "file:///etc"},
               {"file:///etc/..", "file:///"},
               {"file:///etc/.", "file:///etc/"},
               {"file:///a/b/../", "file:///a/"},
               {"file:///etc%2fpasswd", "file:///etc%2Fpasswd"},
               {"file:///%252e%252e/x", "file:///%252e%252e/x"},
               {"file:///a%zz%4", "file:///a%zz%4"},
               {"file:///a//b", "file:///a//b"},
               {"file:///a//../b", "file:///a/b"},
               {"file:///..//a", "file:////a"},
               {"file://LocalHost/A", "file://localhost/A"},
               {"HTTPS://User:Pw@EXAMPLE.com:8443/a/../b?X=%7e/../y#Z%2d",
                "https://User:Pw@example.com:8443/b?X=~/../y#Z-"},
               {"https://ex%41mple%2fx/", "https://example%2Fx/"},
               {"http://example.com", "http://example.com"},
               {"http://[2001:DB8::1]/", "http://[2001:db8::1]/"},
               {"note:Team/./a/../b", "note:Team/b"},
               {"URN:Example:A", "urn:Example:A"},
               {"x:/..//host/a", "x:/.//host/a"},
               {"/a/../b", "/b"},
               {"a/../../b", "b"},
               {"1x:y", "1x:y"},
               {"example://a/b/c/%7Bfoo%7D", "example://a/b/c/%7Bfoo%7D"},
               {"eXAMPLE://a/./b/../b/%63/%7bfoo%7d", "example://a/b/c/%7Bfoo%7D"},
               {"caf\xC3\xA9:x", "caf\xC3\xA9:x"}};
  for (const auto &each : cases) {
    INFO(each.uri);
    const std::string normalized = normalized_uri(each.uri);
    CHECK(normalized == each.normalized);
    CHECK(normalized_uri(normalized) == normalized);
  }
}
