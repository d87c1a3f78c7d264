// Tests the form of responses for clients of MCP 2026-07-28.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "mcp/scan.hpp"
#include "route/protocol.hpp"
#include "route/stateless_form.hpp"

using namespace bulkhead;

namespace {

constexpr std::string_view info = R"({"name":"g"})";
constexpr std::string_view named = R"("_meta":{"io.modelcontextprotocol/serverInfo":{"name":"g"}})";

StatelessForm form_of(bool cacheable) {
  StatelessForm form(cacheable);
  form.set_server_info(info);
  return form;
}

// Returns the members that are inserted into a server's response with this result.
std::string_view members_of_answer(const StatelessForm &form, const std::string &result) {
  const std::string text = R"({"jsonrpc":"2.0","id":1,"result":)" + result + "}";
  mcp::Scan scan;
  mcp::ScanError error;
  REQUIRE(mcp::scan(text, &scan, &error));
  return form.members(Message{text, &scan});
}

}  // namespace

TEST_CASE("missing members are inserted before the members of a result") {
  const StatelessForm plain = form_of(false), cacheable = form_of(true);
  const std::string type = R"("resultType":"complete",)",
                    hints = R"("ttlMs":0,"cacheScope":"private",)";
  const std::string name(named);
  struct Case {
    std::string result, plain, cacheable;
  };
  for (const auto &[result, p, c] : std::vector<Case>{
           {"{}", "{" + type + name + "}", "{" + type + hints + name + "}"},
           {"{ }", "{" + type + name + " }", "{" + type + hints + name + " }"},
           {R"({"a":{"resultType":"x"}})", "{" + type + name + R"(,"a":{"resultType":"x"}})",
            "{" + type + hints + name + R"(,"a":{"resultType":"x"}})"},
           {R"({"_meta":{"k":1}})", "{" + type.substr(0, type.size() - 1) + R"(,"_meta":{"k":1}})",
            "{" + type + hints.substr(0, hints.size() - 1) + R"(,"_meta":{"k":1}})"},
           {R"({"ttlMs":5,"result\u0054ype":"complete"})",
            "{" + name + R"(,"ttlMs":5,"result\u0054ype":"complete"})",
            R"({"cacheScope":"private",)" + name + R"(,"ttlMs":5,"result\u0054ype":"complete"})"},
           {R"({"resultType":"input_required","result\u0054ype":"complete"})",
            "{" + name + R"(,"resultType":"input_required","result\u0054ype":"complete"})",
            "{" + name + R"(,"resultType":"input_required","result\u0054ype":"complete"})"},
           {R"({"resultType":"input_required","requestState":"s"})",
            "{" + name + R"(,"resultType":"input_required","requestState":"s"})",
            "{" + name + R"(,"resultType":"input_required","requestState":"s"})"}}) {
    INFO(result);
    CHECK(formed_result(plain, result) == p);
    CHECK(members_of_answer(plain, result) == plain.members(result));
    CHECK(members_of_answer(cacheable, result) == cacheable.members(result));
    CHECK(formed_result(cacheable, result) == c);
    CHECK(mcp::valid_json(c));
  }
  const std::string complete =
      R"({"resultType":"complete","ttlMs":1,"cacheScope":"public","_meta":{}})";
  CHECK(formed_result(cacheable, complete) == complete);
  CHECK(cacheable.list_members({}) == type + name + R"(,"ttlMs":0,"cacheScope":"private")");
  CHECK(cacheable.list_members({5000, true}) ==
        type + name + R"(,"ttlMs":5000,"cacheScope":"public")");
}

TEST_CASE("error codes without a meaning in this revision are replaced") {
  const StatelessForm form = form_of(false);
  struct Case {
    std::int32_t code, formed;
    std::uint32_t status;
  };
  for (const auto &[code, formed, status] : std::vector<Case>{{-32002, -32602, 0},
                                                              {-32601, -32602, 0},
                                                              {-32042, -32603, 0},
                                                              {-32000, -32603, 0},
                                                              {-32019, -32603, 0},
                                                              {-32020, -32603, 0},
                                                              {-32022, -32603, 0},
                                                              {-32099, -32603, 0},
                                                              {-32021, -32021, 400},
                                                              {-32100, -32100, 0},
                                                              {-31999, -31999, 0},
                                                              {-32603, -32603, 0},
                                                              {-32600, -32600, 0},
                                                              {5, 5, 0},
                                                              {-1, -1, 0}}) {
    INFO(code);
    CHECK(form.error(code).code == formed);
    CHECK(form.error(code).http_status == status);
  }
}
