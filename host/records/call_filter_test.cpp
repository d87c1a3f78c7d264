#include "records/call_filter.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

RecordedNames three_tools() {
  RecordedNames out;
  out.servers = {"work", "vault"};
  out.tools = {{"work", "file_delete"}, {"work", "file_read"}, {"vault", "get"}};
  out.clients = {"Claude Code", "node"};
  return out;
}

CallFilter for_tool(const std::string &tool, const Naming &naming = {}) {
  RecordArguments arguments;
  arguments.tool = tool;
  return {arguments, "", "", naming};
}

using Text = std::optional<std::string>;

}  // namespace

TEST_CASE("a tool is selected by its own name and by its listed name") {
  CHECK(for_tool("file_delete").sql() == " AND (tool_name = 'file_delete')");
  CHECK(for_tool("work__file_delete").sql() ==
        " AND (tool_name = 'work__file_delete' OR (server_name = 'work' AND tool_name = "
        "'file_delete'))");
  // A tool's own name may contain the separator.
  CHECK(for_tool("vault__get__x").sql() ==
        " AND (tool_name = 'vault__get__x' OR (server_name = 'vault' AND tool_name = 'get__x'))");
  Naming naming;
  naming.separator = "-";
  naming.aliases.emplace("rm", "work-file_delete");
  CHECK(for_tool("rm", naming).sql() ==
        " AND (tool_name = 'rm' OR (server_name = 'work' AND tool_name = 'file_delete'))");
  naming.prefix = false;
  naming.aliases.clear();
  naming.aliases.emplace("rm", "file_delete");
  CHECK(for_tool("rm", naming).sql() == " AND (tool_name = 'rm' OR tool_name = 'file_delete')");
  CHECK(for_tool("o'k").sql() == " AND (tool_name = 'o''k')");
}

TEST_CASE("a shortened name selects the recorded tools that have it") {
  Naming naming;
  RecordedNames recorded = three_tools();
  for (const char end : {'a', 'b'}) {
    recorded.tools.emplace_back("work", std::string(150, 'x') + end);
  }
  const Names names(naming);
  for (const std::size_t i : {3, 4}) {
    const auto &[server, tool] = recorded.tools[i];
    const auto listed = names.compose(server, tool);
    REQUIRE(listed);
    REQUIRE(*listed != "work__" + tool);
    CallFilter filter = for_tool(*listed, naming);
    CHECK(filter.sql().find(tool) == std::string::npos);
    CHECK(filter.add_shortened(recorded));
    CHECK(filter.sql().find("(server_name = 'work' AND tool_name = '" + tool + "')") !=
          std::string::npos);
    CHECK(filter.unknown_name(recorded, {}) == std::nullopt);
  }
  CHECK_FALSE(for_tool("file_delete").add_shortened(recorded));
  CHECK_FALSE(for_tool("nothing").add_shortened(recorded));
}

TEST_CASE("names that never occur are reported with similar names") {
  const RecordedNames recorded = three_tools();
  const auto unknown = [&](const CallFilter &filter) {
    return filter.unknown_name(recorded, {"later"});
  };
  CHECK(unknown(for_tool("work__file_delet")) ==
        Text("no recorded call has the tool \"work__file_delet\"; did you mean "
             "\"work__file_delete\"?"));
  CHECK(unknown(for_tool("file_raed")) ==
        Text("no recorded call has the tool \"file_raed\"; did you mean \"file_read\"?"));
  CHECK(unknown(for_tool("work__file_delete")) == std::nullopt);
  CHECK(unknown(for_tool("get")) == std::nullopt);
  const auto server = [&](const char *name) {
    return unknown(CallFilter(RecordArguments{}, name, "", Naming{}));
  };
  CHECK(server("wrok") == Text("no recorded call has the server \"wrok\"; did you mean \"work\"?"));
  CHECK(server("latr") ==
        Text("no recorded call has the server \"latr\"; did you mean \"later\"?"));
  CHECK(server("nothing-like-it") == Text("no recorded call has the server \"nothing-like-it\""));
  CHECK(server("later") == std::nullopt);  // configured, but not called yet
  CHECK(server("vault") == std::nullopt);
  RecordArguments arguments;
  arguments.client = "claude code";
  CHECK(unknown(CallFilter(arguments, "", "", Naming{})) ==
        Text("no recorded call has the client \"claude code\"; did you mean \"Claude Code\"?"));
  arguments.client = "node";
  CHECK(unknown(CallFilter(arguments, "", "", Naming{})) == std::nullopt);
}

TEST_CASE("conditions are combined") {
  RecordArguments arguments;
  arguments.client = "Claude Code";
  arguments.session = "7";
  arguments.trace = "4bf9";
  arguments.denied = true;
  CHECK(CallFilter(arguments, "work", "2026-01-01T00:00:00.000Z", Naming{}).sql() ==
        " AND server_name = 'work' AND (claimed_name = 'Claude Code' OR process_name = 'Claude "
        "Code') AND session = '7' AND trace_id = '4bf9' AND timestamp >= "
        "'2026-01-01T00:00:00.000Z' AND decision = 'denied'");
  CHECK(CallFilter(RecordArguments{}, "", "", Naming{}).sql().empty());
}
