// Tests the results of initialize and server/discover.
#include "route/handshake.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "route/fakes.hpp"
#include "route/sessions.hpp"
#include "route/view.hpp"

using namespace bulkhead;

TEST_CASE("instructions that do not fit do not suppress those of later servers") {
  FakeLaneHost host;
  Upstream first{host, server_named("first")}, large{host, server_named("large")},
      last{host, server_named("last")};
  FakeLane lanes[] = {{host, first, 0, 0}, {host, large, 0, 0}, {host, last, 0, 0}};
  lanes[0].set_instructions(std::string(max_instructions_bytes, 'f'));
  lanes[1].set_instructions(std::string(max_instructions_bytes, 'x'));
  lanes[2].set_instructions("use it last");
  View view;
  for (FakeLane &lane : lanes) view.lanes.push_back(&lane);
  Sessions sessions{1};
  FakeClient client;
  Session &session = open_session(sessions, client);
  session.view = &view;
  const Profile profile;
  for (const std::string &result :
       {initialize_result(session, profile), discover_result(session, profile)}) {
    std::string scratch;
    const std::string text(mcp::unquote(mcp::member(result, "instructions"), &scratch));
    CHECK(text.starts_with("## first\nfff"));
    CHECK(text.find("## large") == std::string::npos);
    CHECK(text.ends_with("f\n## last\nuse it last"));
  }
}
