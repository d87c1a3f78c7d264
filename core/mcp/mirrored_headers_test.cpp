#include "mcp/mirrored_headers.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/cpp/messages.hpp"
#include "bulkhead/cpp/text.hpp"

using namespace bulkhead::mcp;

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string request(const std::string &method, const std::string &params) {
  return R"({"jsonrpc":"2.0","id":7,"method":")" + method + R"(","params":{)" + params +
         R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}})";
}

// Returns the fault found, or an empty HeaderFault if the headers match.
HeaderFault check(const std::string &message, const Pairs &pairs) {
  Scan scan;
  ScanError error;
  REQUIRE(bulkhead::mcp::scan(message, &scan, &error));
  std::vector<bh_header> headers;
  for (const auto &[name, value] : pairs) headers.push_back({bh::str(name), bh::str(value)});
  MirroredScratch scratch;
  return check_mirrored_headers(mirrored_values(message, scan, &scratch), headers)
      .value_or(HeaderFault{});
}

Pairs composed(const std::string &message) {
  Scan scan;
  ScanError error;
  REQUIRE(bulkhead::mcp::scan(message, &scan, &error));
  MirroredScratch scratch;
  HeaderList list;
  add_mirrored_headers(mirrored_values(message, scan, &scratch), &list);
  REQUIRE(bh::check_headers(list.all(), nullptr) == BH_OK);
  Pairs out;
  for (const bh_header &header : list.all()) {
    out.emplace_back(bh::view(header.name), bh::view(header.value));
  }
  return out;
}

const std::string call = request("tools/call", R"("name":"fs.read","arguments":{},)");
const Pairs good = {
    {"MCP-Protocol-Version", "2026-07-28"}, {"Mcp-Method", "tools/call"}, {"Mcp-Name", "fs.read"}};

}  // namespace

TEST_CASE("mirrored headers: a request with equal headers is accepted") {
  CHECK(check(call, good).header.empty());
  CHECK(check(call, {{"mcp-protocol-VERSION", " 2026-07-28\t"},
                     {"MCP-METHOD", "\ttools/call "},
                     {"mcp-name", "  fs.read "},
                     {"Mcp-Param-Region", "any"},
                     {"Host", "x"}})
            .header.empty());
  CHECK(check(call, {good[2], good[0], good[1]}).header.empty());
  CHECK(check(call, {good[0], good[1], {"Mcp-Name", "=?base64?ZnMucmVhZA==?="}}).header.empty());
}

TEST_CASE("mirrored headers: a missing, duplicate, unequal or malformed header is reported") {
  const auto with = [](std::size_t i, const std::string &value) {
    Pairs pairs = good;
    pairs[i].second = value;
    return check(call, pairs);
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    const std::string &name = good[i].first;
    INFO(name);
    Pairs pairs = good;
    pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(i));
    CHECK(check(call, pairs).header == name);
    CHECK(check(call, pairs).text.find(name + " is missing") != std::string::npos);

    pairs = good;
    pairs.emplace_back(bh::lowered(name), good[i].second);
    CHECK(check(call, pairs).header == name);
    CHECK(check(call, pairs).text.find("more than once") != std::string::npos);

    for (const std::string &other : {std::string(), good[i].second + "x",
                                     good[i].second + ", " + good[i].second, std::string("x")}) {
      CHECK(with(i, other).header == name);
      CHECK(with(i, other).text.find("differs from") != std::string::npos);
    }
  }
  CHECK(with(1, "Tools/Call").header == "Mcp-Method");  // values are case-sensitive
  CHECK(with(2, "FS.read").header == "Mcp-Name");
  CHECK(with(2, "=?base64?ZnMucmVhZA?=").text.find("malformed") != std::string::npos);
  CHECK(with(2, "caf\xC3\xA9").text.find("malformed") != std::string::npos);
  CHECK(with(2, "=?base64?ZnMud3JpdGU=?=").text.find("params.name") != std::string::npos);
  // Encoded values are accepted only in Mcp-Name.
  CHECK(with(1, "=?base64?dG9vbHMvY2FsbA==?=").header == "Mcp-Method");
  CHECK(with(0, "=?base64?MjAyNi0wNy0yOA==?=").header == "MCP-Protocol-Version");
}

TEST_CASE("mirrored headers: error messages contain both revisions, but no name or URI") {
  Pairs pairs = good;
  pairs[0].second = "2025-11-25";
  CHECK(check(call, pairs).text.find("\"2025-11-25\" and \"2026-07-28\"") != std::string::npos);
  pairs = good;
  pairs[2].second = "secret-in-header";
  CHECK(check(call, pairs).text.find("secret") == std::string::npos);
  CHECK(check(call, pairs).text.find("fs.read") == std::string::npos);
  pairs = good;
  pairs[1].second = std::string(1000, 'x');
  CHECK(check(call, pairs).text.size() < 200);
}

TEST_CASE("mirrored headers: the faults are reported in the order revision, method, name") {
  Pairs pairs = {{"Mcp-Name", "x"}, {"Mcp-Method", "x"}, {"MCP-Protocol-Version", "x"}};
  CHECK(check(call, pairs).header == "MCP-Protocol-Version");
  pairs[2].second = "2026-07-28";
  CHECK(check(call, pairs).header == "Mcp-Method");
  pairs[1].second = "tools/call";
  CHECK(check(call, pairs).header == "Mcp-Name");
  CHECK(check(call, {}).header == "MCP-Protocol-Version");
}

TEST_CASE("mirrored headers: the name depends on the method") {
  const struct {
    const char *method, *params, *name;
  } cases[] = {{"tools/call", R"("name":"a","uri":"b","taskId":"c",)", "a"},
               {"prompts/get", R"("name":"a","uri":"b","taskId":"c",)", "a"},
               {"resources/read", R"("name":"a","uri":"b","taskId":"c",)", "b"},
               {"tasks/get", R"("name":"a","uri":"b","taskId":"c",)", "c"},
               {"tasks/update", R"("name":"a","uri":"b","taskId":"c",)", "c"},
               {"tasks/cancel", R"("name":"a","uri":"b","taskId":"c",)", "c"},
               {"tasks\\/cancel", R"("name":"a","uri":"b","taskId":"c",)", "c"},
               {"tasks/result", R"("taskId":"c",)", nullptr},
               {"tools/list", R"("name":"a",)", nullptr},
               {"server/discover", "", nullptr},
               {"completion/complete", R"("ref":{"type":"ref/prompt","name":"a"},)", nullptr}};
  for (const auto &c : cases) {
    INFO(c.method);
    const std::string message = request(c.method, c.params);
    std::string method = c.method;
    std::erase(method, '\\');
    Pairs pairs = {{"MCP-Protocol-Version", "2026-07-28"}, {"Mcp-Method", method}};
    CHECK(check(message, pairs).header == (c.name == nullptr ? "" : "Mcp-Name"));
    if (c.name != nullptr) pairs.emplace_back("Mcp-Name", c.name);
    CHECK(check(message, pairs).header.empty());
    CHECK(composed(message) == pairs);
  }
}

TEST_CASE("mirrored headers: composed headers are accepted") {
  for (const char *name :
       {"fs.read", " padded ", "\\u4e16\\u754c", "\u4e16", "a\\r\\nMcp-Method: x", "",
        "=?base64?SGVsbG8=?=", "\\ud83d\\ude00", "tab\\t", "a\\u0000b"}) {
    INFO(name);
    const std::string message =
        request("resources/read", std::string(R"("uri":")") + name + R"(",)");
    CHECK(composed(message).size() == 3);
    CHECK(check(message, composed(message)).header.empty());
    Pairs other = composed(message);
    other[2].second = "=?base64?eA==?=";
    CHECK(check(message, other).header == "Mcp-Name");
  }
}

TEST_CASE("mirrored headers: a header is not compared if the body has no value for it") {
  CHECK(check(request("tools/call", R"("arguments":{},)"), {good[0], good[1]}).header.empty());
  CHECK(check(request("tools/call", R"("name":5,)"), {good[0], good[1], {"Mcp-Name", "5"}})
            .header.empty());
  const std::string bare = R"({"jsonrpc":"2.0","id":7,"method":"tools/list"})";
  CHECK(check(bare, {{"Mcp-Method", "tools/list"}}).header.empty());
  CHECK(check(bare, {{"Mcp-Method", "tools/call"}}).header == "Mcp-Method");
}

TEST_CASE("header list: a cleared list can be reused") {
  HeaderList list;
  list.add("A", "1");
  list.add("B", std::string(1000, 'x'));
  REQUIRE(list.all().size() == 2);
  CHECK(bh::view(list.all()[0].value) == "1");
  list.clear();
  CHECK(list.all().empty());
  list.add("C", "\u00e9");
  REQUIRE(list.all().size() == 1);
  CHECK(bh::view(list.all()[0].name) == "C");
  CHECK(bh::view(list.all()[0].value) == "=?base64?w6k=?=");
}
