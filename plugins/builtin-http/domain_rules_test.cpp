// Tests the domain rules and the configuration.
#include "builtin-http/domain_rules.hpp"

#include <catch2/catch.hpp>

#include "builtin-http/config.hpp"

using namespace builtin_http;

namespace {

Config config(std::string_view json) {
  Config c;
  bh_error error = bh::make_error();
  const bh_status status = parse_config(json, &c, &error);
  INFO(bh::text(error));
  REQUIRE(status == BH_OK);
  return c;
}

std::string refusal(const Config &c, std::string_view where) {
  Url url;
  std::string problem;
  INFO(where);
  REQUIRE(parse_url("http://" + std::string(where) + "/", &url, &problem));
  return c.refusal(url);
}

}  // namespace

TEST_CASE("the block list is applied first, then the allow list, then the default") {
  const Config c = config(
      R"({"allow":["good.test","*.a.test","Both.test"],"block":["both.test","*.bad.a.test"]})");
  CHECK(refusal(c, "good.test").empty());
  CHECK(refusal(c, "x.a.test").empty());
  CHECK(refusal(c, "x.y.a.test").empty());
  CHECK(refusal(c, "a.test").find("blocked: it is not on the allow list") != std::string::npos);
  CHECK_FALSE(refusal(c, "xa.test").empty());
  CHECK_FALSE(refusal(c, "good.test.evil.test").empty());
  CHECK(refusal(c, "both.test").find("blocked by the block list entry both.test") !=
        std::string::npos);
  CHECK_FALSE(refusal(c, "x.bad.a.test").empty());
  CHECK(refusal(config("{}"), "any.test").empty());
  CHECK_FALSE(refusal(config(R"({"default":"deny"})"), "any.test").empty());
  CHECK(refusal(config(R"({"allow":["a.test"],"default":"allow"})"), "any.test").empty());
  Config ignored;
  for (const char *bad :
       {"[]", R"({"allow":"a"})", R"({"allow":["*"]})", R"({"block":["a*.b"]})",
        R"({"block":["http://a/"]})", R"({"default":"maybe"})", R"({"allow_private":1})",
        R"({"max_body_bytes":10})", R"({"cache_bytes":-1})", R"({"timeout_ms":-1})",
        R"({"allow":["a.test:0"]})", R"({"allow":["*.10.0.0.1"]})", R"({"allow":["a.test:x"]})",
        R"({"methods":["trace"]})", R"({"allow_addresses":["10.0.0.1/8"]})"}) {
    INFO(bad);
    CHECK(parse_config(bad, &ignored, nullptr) == BH_E_INVALID);
  }
}

TEST_CASE("the lists support ports, addresses and non-ASCII names") {
  const Config c = config(
      R"({"allow":["a.test:8080","*.b.test:80","B\u00fccher.example","[2001:4860::8888]:443",
          "8.8.8.8"]})");
  CHECK(refusal(c, "a.test:8080").empty());
  CHECK_FALSE(refusal(c, "a.test").empty());
  CHECK(refusal(c, "x.b.test").empty());
  CHECK_FALSE(refusal(c, "x.b.test:81").empty());
  CHECK(refusal(c, "xn--bcher-kva.example:81").empty());
  CHECK(refusal(c,
                "b\xC3\xBC"
                "cher.example")
            .empty());
  CHECK(refusal(c, "[2001:4860::8888]:443").empty());
  CHECK_FALSE(refusal(c, "[2001:4860::8888]:80").empty());
  CHECK(refusal(c, "8.8.8.8:99").empty());
  const Config blocked = config(R"({"block":["*.bad.test","worse.test:80"]})");
  CHECK(refusal(blocked, "x.bad.test:444").find("blocked by the block list entry *.bad.test") !=
        std::string::npos);
  CHECK(refusal(blocked, "worse.test:81").empty());
}
