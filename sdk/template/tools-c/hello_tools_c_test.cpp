// Tests the plugin through the ABI, in a host for tests. The argument is the plugin's file.
#include <bulkhead/abi/ext/tools.h>
#include <bulkhead/cpp/json.hpp>
#include <bulkhead/cpp/tools.hpp>
#include <bulkhead/testing/test_plugin.hpp>

#include <map>
#include <string>

namespace {

using bh::testing::FakeHost;
using bh::testing::TestPlugin;

using Results = std::map<bh_call, std::string>;

Results &results(void *ctx) {
  return *static_cast<Results *>(FakeHost::self(ctx).user);
}

const bh_host_tools host_tools{
    sizeof(bh_host_tools),
    0,
    [](void *ctx, bh_call call, const bh_result *result) -> bh_status {
      const bh::Buf json(result->json);
      BH_CHECK(results(ctx).emplace(call, json.view()).second);  // completed once
      return BH_OK;
    },
    [](void *, bh_call, const bh_progress *) {},
    [](void *, const bh_list_info *) {},
    [](void *, bh_str) {}};

bh_status call(TestPlugin &plugin, bh_call id, const char *name, const char *arguments) {
  bh_call_info info{};
  info.size = sizeof info;
  info.method = bh::str("tools/call");
  info.name = bh::str(name);
  info.arguments = bh::str(arguments);
  return plugin.ext<bh_tools>(BH_EXT_TOOLS)->call_begin(plugin.self(), id, &info, plugin.error());
}

}  // namespace

int main(int, char **argv) {
  FakeHost host;
  Results seen;
  host.user = &seen;
  host.add_ext(BH_EXT_HOST_TOOLS, &host_tools);
  TestPlugin plugin(host, argv[1]);
  BH_CHECK(plugin.configure("{}") == BH_OK);
  BH_CHECK(plugin.start() == BH_OK);
  const auto *tools = plugin.ext<bh_tools>(BH_EXT_TOOLS);

  const bh_list_info tools_info = bh::list_info(BH_LIST_TOOLS);
  const bh_list_info prompts_info = bh::list_info(BH_LIST_PROMPTS);
  bh_buf list{};
  BH_CHECK(tools->list(plugin.self(), &tools_info, &list, plugin.error()) == BH_OK);
  BH_CHECK(bh::Buf(list).view().find(R"("name":"echo")") != std::string_view::npos);
  BH_CHECK(tools->list(plugin.self(), &prompts_info, &list, plugin.error()) == BH_E_UNSUPPORTED);

  BH_CHECK(call(plugin, 1, "echo", R"({"say":"hi"})") == BH_OK);
  BH_CHECK(seen[1] == R"({"content":[{"type":"text","text":"{\"say\":\"hi\"}"}]})");
  BH_CHECK(call(plugin, 2, "no-such-tool", "{}") == BH_E_NOT_FOUND);
  BH_CHECK(plugin.error_text() == "unknown tool");

  // The result is valid JSON, whatever the arguments contain.
  BH_CHECK(call(plugin, 3, "echo", "{\"a\":\n\"\x01\\\\\"}") == BH_OK);
  BH_CHECK(bh::json::valid(seen[3]));
  BH_CHECK(call(plugin, 4, "echo", "") == BH_OK);
  BH_CHECK(seen[4] == R"({"content":[{"type":"text","text":""}]})");
  plugin.stop();
  return 0;
}
