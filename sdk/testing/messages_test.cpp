// Tests message headers, and the delivery of messages to older hosts, which do not support headers.
#include <bulkhead/cpp/messages.hpp>
#include <bulkhead/testing/fake_host.hpp>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace {

// A fake host that stores the messages it receives.
struct Host {
  int whole = 0, plain = 0;
  std::vector<std::string> names;
  bh_host_transport table{};
  bh::testing::FakeHost fake;

  Host() {
    fake.user = this;
    table.size = sizeof table;
    table.deliver = [](void *ctx, bh_session session, std::uint64_t stream, bh_str message,
                       bh_delivery *out) -> bh_status {
      ++of(ctx).plain;
      CHECK(session == 5);
      CHECK(stream == 6);
      CHECK(bh::view(message) == "{}");
      out->kind = BH_DELIVERED_ANSWER;
      return BH_OK;
    };
    table.deliver_message = [](void *ctx, const bh_incoming *in, bh_delivery *) -> bh_status {
      ++of(ctx).whole;
      for (const bh_header &header : bh::headers(*in)) {
        of(ctx).names.emplace_back(bh::view(header.name));
      }
      return BH_E_SESSION_LOST;
    };
  }
  static Host &of(void *ctx) { return *static_cast<Host *>(bh::testing::FakeHost::self(ctx).user); }
  bh_status deliver(bh_session session, bh_delivery *out) {
    const bh_header header{bh::str("Mcp-Name"), bh::str("x")};
    bh_incoming in{};
    in.size = sizeof in;
    in.session = session;
    in.stream = 6;
    in.message = bh::str("{}");
    in.headers = &header;
    in.header_count = 1;
    return bh::deliver(fake.host()->ctx, table, in, out);
  }
};

std::string fault(const std::vector<bh_header> &headers) {
  bh_error error = bh::make_error();
  const bh_status status = bh::check_headers(headers, &error);
  CHECK(status == error.code);
  CHECK(bh::check_headers(headers, nullptr) == status);
  return std::string(bh::text(error));
}
bh_header header(std::string_view name, std::string_view value) {
  return {bh::str(name), bh::str(value)};
}

}  // namespace

TEST_CASE("a message is delivered with headers if the host supports them") {
  Host host;
  bh_delivery out{};
  CHECK(host.deliver(5, &out) == BH_E_SESSION_LOST);
  CHECK(host.deliver(0, &out) == BH_E_SESSION_LOST);
  CHECK(host.whole == 2);
  CHECK(host.plain == 0);
  CHECK(host.names == std::vector<std::string>{"Mcp-Name", "Mcp-Name"});
}

TEST_CASE("a host older than minor version 2 receives only session messages") {
  Host host;
  host.table.size = offsetof(bh_host_transport, deliver_message);
  bh_delivery out{};
  CHECK(host.deliver(5, &out) == BH_OK);
  CHECK(out.kind == BH_DELIVERED_ANSWER);
  CHECK(host.deliver(0, &out) == BH_E_UNSUPPORTED);
  CHECK(host.whole == 0);
  CHECK(host.plain == 1);
}

TEST_CASE("a message from a host older than minor version 2 has no headers") {
  const bh_header one = header("Mcp-Name", "x");
  bh_lane_message message{};
  message.size = sizeof message;
  message.headers = &one;
  message.header_count = 1;
  CHECK(bh::headers(message).size() == 1);
  message.size = offsetof(bh_lane_message, headers);
  CHECK(bh::headers(message).empty());
}

TEST_CASE("headers are accepted or rejected as the ABI requires") {
  CHECK(fault({}).empty());
  CHECK(fault({header("Mcp-Name", "a\tb \xC3\xA9\xFF"), header("!#$%&'*+-.^_`|~09azAZ", "")})
            .empty());
  for (const std::string_view name :
       {std::string_view(""), std::string_view("a b"), std::string_view("a:"),
        std::string_view("a\r\nb"), std::string_view("\xC3\xA9"), std::string_view("a\0b", 3),
        std::string_view("@"), std::string_view("[")}) {
    CHECK(fault({header("A", "1"), header(name, "s3cret")}) ==
          "the name of header 2 is not a token (RFC 9110)");
  }
  for (const std::string_view value :
       {std::string_view("s3cret\r\nB: 1"), std::string_view("\n"), std::string_view("\0", 1),
        std::string_view("\x7F"), std::string_view("\x1F")}) {
    CHECK(fault({header("A", value)}) == "the value of header \"A\" contains a control character");
  }
  std::vector<bh_header> many(BH_HEADER_COUNT, header("A", "1"));
  CHECK(fault(many).empty());
  many.push_back(header("A", "1"));
  CHECK(fault(many) == "a message has at most 64 headers, not 65");
  const std::string most(BH_HEADER_BYTES - 1, 'x');
  CHECK(fault({header("A", most)}).empty());
  CHECK(fault({header("AB", most)}) ==
        "the headers of a message have at most 32768 bytes, not 32769");
}
