// Tests the address filter.
#include "builtin-http/address.hpp"

#include <catch2/catch.hpp>

using namespace builtin_http;

TEST_CASE("public addresses are permitted and special-purpose addresses are not") {
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

TEST_CASE("networks that the profile allows are permitted") {
  const auto network = [](std::string_view text) {
    Network n;
    INFO(text);
    REQUIRE(Network::parse(text, &n));
    return n;
  };
  CHECK(network("10.1.0.0/16").contains("10.1.2.3"));
  CHECK(network("10.1.0.0/16").contains("::ffff:10.1.2.3"));
  CHECK_FALSE(network("10.1.0.0/16").contains("10.2.0.1"));
  CHECK_FALSE(network("10.1.0.0/16").contains("::10.1.2.3"));
  CHECK(network("127.0.0.1").contains("127.0.0.1"));
  CHECK_FALSE(network("127.0.0.1").contains("127.0.0.2"));
  CHECK(network("192.168.4.0/22").contains("192.168.7.255"));
  CHECK_FALSE(network("192.168.4.0/22").contains("192.168.8.0"));
  CHECK(network("fd00::/8").contains("fd12::1"));
  CHECK_FALSE(network("fd00::/8").contains("fe00::1"));
  CHECK_FALSE(network("::1").contains("127.0.0.1"));
  Network ignored;
  for (const char *bad : {"", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/", "10.0.0.0/8x",
                          "10.0.0.0/-1", "::/129", "fd00::1/8", "localhost", "10.0.0/8"}) {
    INFO(bad);
    CHECK_FALSE(Network::parse(bad, &ignored));
  }
  AddressRules rules{false, {network("10.1.0.0/16")}};
  CHECK(rules.permit("8.8.8.8"));
  CHECK(rules.permit("10.1.0.1"));
  CHECK_FALSE(rules.permit("169.254.169.254"));
  CHECK_FALSE(rules.permit("nonsense"));
  CHECK(AddressRules{true, {}}.permit("127.0.0.1"));
}
