// Tests removing the members of _meta that are only for the gateway.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "mcp/request_meta_names.hpp"
#include "route/client_meta.hpp"
#include "route/request_meta.hpp"

using namespace bulkhead;

namespace {

// Returns a request with the given _meta.
std::string request_with(const std::string &meta) {
  return R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":)" + meta +
         "}}";
}

// Returns the _meta that a server receives. `added` contains the members that the gateway adds for
// the server's connection.
std::string forwarded(const std::string &meta, std::string_view added = {}) {
  const std::string text = request_with(meta);
  mcp::Scan scan;
  mcp::ScanError error;
  REQUIRE(mcp::scan(text, &scan, &error));
  const Message message{text, &scan};
  Splice splice(text);
  splice.replace(scan.progress_token, "77");
  const bool has_members = remove_client_meta(&splice, message, !added.empty());
  RequestMeta own;
  own.set(added);
  if (!own.empty()) own.add_to(&splice, message, has_members);
  const bh_str *parts = splice.parts();
  REQUIRE(parts != nullptr);
  std::string out;
  for (std::uint32_t i = 0; i < splice.count(); ++i) out += bh::view(parts[i]);
  CHECK(mcp::valid_json(out));
  return std::string(mcp::member(mcp::member(out, "params"), "_meta"));
}

}  // namespace

TEST_CASE("the gateway's own subscription is removed from a notification") {
  const auto left = [](const std::string &meta) {
    const std::string text =
        R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b","_meta":)" +
        meta + "}}";
    mcp::Scan scan;
    mcp::ScanError error;
    REQUIRE(mcp::scan(text, &scan, &error));
    Splice splice(text);
    const bool members = remove_subscription_id(&splice, {text, &scan});
    const bh_str *parts = splice.parts();
    std::string out;
    for (std::uint32_t i = 0; i < splice.count(); ++i) out += bh::view(parts[i]);
    const std::string shown(mcp::member(mcp::member(out, "params"), "_meta"));
    CHECK(members == (shown != "{}"));
    return shown;
  };
  CHECK(left(R"({"io.modelcontextprotocol/subscriptionId":7})") == "{}");
  CHECK(left(R"({"a":1,"io.modelcontextprotocol\/subscriptionId":"x","b":2})") ==
        R"({"a":1,"b":2})");
  CHECK(left(R"({"io.modelcontextprotocol/logLevel":"info"})") ==
        R"({"io.modelcontextprotocol/logLevel":"info"})");
}

TEST_CASE("the members for the gateway are removed and all other bytes stay") {
  const std::string v = R"("io.modelcontextprotocol/protocolVersion":"2026-07-28")";
  const std::string c = R"("io.modelcontextprotocol/clientCapabilities" : {"a,b":"}"})";
  const std::string i = R"("io.modelcontextprotocol/clientInfo":{"name":"x"})";
  const std::string l = R"("io.modelcontextprotocol\/logLevel":"info")";
  struct Case {
    std::string meta, left;
  };
  for (const auto &[meta, left] : std::vector<Case>{
           {"{" + v + "}", "{}"},
           {"{ " + v + " }", "{}"},
           {"{" + v + "," + c + "," + i + "," + l + "}", "{}"},
           {"{" + v + R"(,"a":1})", R"({"a":1})"},
           {R"({"a":1,)" + v + "}", R"({"a":1})"},
           {R"({ "a" : 1 , )" + v + " , " + c + R"( , "b":2 })", R"({ "a" : 1 , "b":2 })"},
           {"{" + v + R"(,"a":1,)" + c + R"(,"b":[2],)" + i + R"(,"c":{},)" + l + "}",
            R"({"a":1,"b":[2],"c":{}})"},
           {"{" + v + R"(,"progressToken":"p",)" + c + "}", R"({"progressToken":77})"}}) {
    INFO(meta);
    CHECK(forwarded(meta) == left);
  }
}

TEST_CASE("every order of members leaves the others, with and without members of the connection") {
  std::vector<std::string> members = {R"("a":1)", R"("b":{"c":[]})"};
  for (const char *name : mcp::request_meta_names) {
    const bool text =
        std::string_view(name).ends_with("sion") || std::string_view(name).ends_with("vel");
    members.push_back("\"" + std::string(name) + "\":" + (text ? R"("2026-07-28")" : "{}"));
  }
  std::sort(members.begin(), members.end());
  std::size_t orders = 0;
  do {
    ++orders;
    std::string meta = "{";
    for (const std::string &member : members)
      meta.append(meta.size() > 1 ? "," : "").append(member);
    meta += "}";
    const std::string left = forwarded(meta);
    const std::string both = forwarded(meta, R"("own":0)");
    if (left.size() != std::string_view(R"({"a":1,"b":{"c":[]}})").size()) FAIL(meta << left);
    if (mcp::member(left, "a") != "1" || mcp::member(left, "b") != R"({"c":[]})")
      FAIL(meta << left);
    if (both != R"({"own":0,)" + left.substr(1)) FAIL(meta << both);
  } while (std::next_permutation(members.begin(), members.end()));
  CHECK(orders == 720);
}

TEST_CASE("a _meta without the revision is not changed, and gets the members of the connection") {
  CHECK(forwarded(R"({"io.modelcontextprotocol/clientInfo":{} , "a":1})") ==
        R"({"io.modelcontextprotocol/clientInfo":{} , "a":1})");
  // If a server receives the gateway's own values, it does not receive the client's.
  CHECK(forwarded(R"({"io.modelcontextprotocol/clientInfo":{},"a":1})", R"("own":0)") ==
        R"({"own":0,"a":1})");
  CHECK(forwarded("{ }", R"("own":0)") == R"({"own":0})");
  CHECK(forwarded(R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28"})", R"("own":0)") ==
        R"({"own":0})");
}
