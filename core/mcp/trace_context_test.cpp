#include "mcp/trace_context.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace bulkhead::mcp;

TEST_CASE("traceparent consists of version, trace, parent and flags") {
  const std::string good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  CHECK(valid_traceparent(good));
  CHECK(valid_traceparent("cc" + good.substr(2)));
  CHECK(valid_traceparent("cc" + good.substr(2) + "-what-will-be"));
  for (const std::string &bad :
       {std::string(), std::string("x"), good.substr(1), good + "-more", good + "x",
        "ff" + good.substr(2), "0g" + good.substr(2), "cc" + good.substr(2) + "-Rm -rf",
        "cc" + good.substr(2) + std::string(80, '-'),
        std::string("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"),
        std::string("00-00000000000000000000000000000000-b7ad6b7169203331-01"),
        std::string("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"),
        std::string("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0z"),
        std::string("00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")}) {
    INFO(bad);
    CHECK_FALSE(valid_traceparent(bad));
  }
}

TEST_CASE("tracestate consists of vendor members") {
  for (const char *good : {"", "a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
                           "fw529a3039@dt=FfAsBbCc, a*b/c_d-e=x y", " a=1;b ,, b=2 ", "1a@b=!"}) {
    INFO(good);
    CHECK(valid_tracestate(good));
  }
  for (const char *bad : {"a", "=1", "a=", "A=1", "a b=1", "a=b=c", "@a=1", "a@=1", "a@b@c=1",
                          "a=\xC3\xA9", "a=\n"}) {
    INFO(bad);
    CHECK_FALSE(valid_tracestate(bad));
  }
  CHECK(valid_tracestate("a=" + std::string(256, 'v')));
  CHECK_FALSE(valid_tracestate("a=" + std::string(257, 'v')));
  CHECK_FALSE(valid_tracestate(std::string(257, 'k') + "=v"));
  std::string many = "a=1";
  for (std::size_t i = 1; i < max_tracestate_members; ++i) many += ",b=2";
  CHECK(valid_tracestate(many));
  CHECK_FALSE(valid_tracestate(many + ",c=3"));
  CHECK_FALSE(valid_tracestate(std::string(max_trace_bytes + 1, ' ')));
}

TEST_CASE("baggage consists of keys, values and properties") {
  for (const char *good :
       {"a=b", "key1=value1;property1;property2, key2 = value2, key3=value3; k=v",
        "userId=Am%C3%A9lie", "a="}) {
    INFO(good);
    CHECK(valid_baggage(good));
  }
  for (const char *bad : {"", "a", "=b", "a=b c", "a=\"b\"", "a=b,", "a=b;", "a b=c", "a=\xC3\xA9",
                          "a=b\\c", "a=b\n"}) {
    INFO(bad);
    CHECK_FALSE(valid_baggage(bad));
  }
  CHECK(valid_baggage("a=" + std::string(max_trace_bytes - 2, 'b')));
  CHECK_FALSE(valid_baggage("a=" + std::string(max_trace_bytes - 1, 'b')));
}
