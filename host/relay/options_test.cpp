#include "relay/options.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace bulkhead::relay;

namespace {

std::variant<Options, int> parse(std::vector<const char *> words) {
  words.insert(words.begin(), "bulkhead-relay");
  return parse_options("bulkhead-relay", static_cast<int>(words.size()), words.data());
}

Options good(const std::vector<const char *> &words) {
  const auto parsed = parse(words);
  REQUIRE(std::holds_alternative<Options>(parsed));
  return std::get<Options>(parsed);
}

}  // namespace

TEST_CASE("the kernel command line can add a port offset") {
  CHECK(port_offset("") == 0);
  CHECK(port_offset("quiet capsem.vsock_port_offset=100 ro\n") == 100);
  CHECK(port_offset("capsem.vsock_port_offset=7") == 7);
  CHECK(port_offset("x.capsem.vsock_port_offset=7 capsem.vsock_port_offset=x") == 0);
  CHECK(port_offset("  a   b  ") == 0);
}

TEST_CASE("options are parsed as --name=value and as --name value") {
  const Options options = good({"doctor", "--cid=3", "--port", "9", "--name", "a b"});
  CHECK(options.doctor);
  CHECK(options.cid == 3);
  CHECK(options.port == 9);
  CHECK(definition_of(options, "parent") ==
        R"({"cid":3,"port":9,"meta_prefix":"CAPSEM_META","process_name":"a b"})");
  CHECK(definition_of(good({"--unix", "/x", "--port", "1"}), "p\"q") ==
        R"({"cid":2,"port":1,"unix":"/x","meta_prefix":"CAPSEM_META","process_name":"p\"q"})");
}

TEST_CASE("invalid port numbers are rejected") {
  for (const char *port : {"", "x", "-1", "4294967296", "1 ", "0x10"}) {
    CHECK(std::get<int>(parse({"--port", port})) == 2);
  }
}
