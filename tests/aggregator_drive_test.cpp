// Tests the SDK's client with the real program, as a host process would use it.
#include <bulkhead-aggregator/client.hpp>
#include <catch2/catch.hpp>

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

using namespace bh::aggregator;
using Kind = Reply::Kind;

namespace {

// Gives the program a private home directory, which is removed afterwards.
class Home {
 public:
  Home() {
    std::string name = std::filesystem::temp_directory_path() / "bulkhead-drive-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    folder_ = name;
    for (const char *variable : {"HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"}) {
      ::setenv(variable, name.c_str(), 1);
    }
  }
  ~Home() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

 private:
  std::filesystem::path folder_;
};

std::string server(std::string_view name, const std::vector<std::string_view> &arguments) {
  std::string out = "{\"name\":";
  bh::json::append_quoted(&out, name);
  out += ",\"command\":\"" FAKE_MCP "\",\"args\":[";
  for (const std::string_view argument : arguments) {
    if (!out.ends_with('[')) out += ',';
    bh::json::append_quoted(&out, argument);
  }
  return out + "]}";
}

Options real(const std::string &definitions, Codec codec = Codec::msgpack) {
  Options options;
  options.program = BULKHEAD_PROGRAM;
  options.definitions = "[" + definitions + "]";
  options.codec = codec;
  options.timeout_ms = 600'000;  // long enough that no test fails because of it
  options.restart_pause_ms = 0;
  return options;
}

std::string text_of(const Reply &reply) {
  const std::string_view content = bh::json::member(reply.text, "content");
  std::string out;
  bh::json::for_each_element(content, [&out](std::string_view each) {
    out += bh::json::unquote(bh::json::member(each, "text"));
    return true;
  });
  return out;
}

}  // namespace

TEST_CASE("the client and the program communicate with both codecs") {
  const Home home;
  Client client(real(server("a", {"--tool", "say", "--resource", "x://y/z", "--prompt", "p"}),
                     GENERATE(Codec::ndjson, Codec::msgpack)));
  CHECK(client.list_servers().text.find("\"connected\":true") != std::string::npos);
  CHECK(client.list_tools().text.find("\"namespaced_name\":\"a__say\"") != std::string::npos);
  CHECK(client.list_resources().text.find("capsem://a/x://y/z") != std::string::npos);
  CHECK(client.list_prompts().text.find("\"a__p\"") != std::string::npos);
  CHECK(text_of(client.call_tool("a__say", R"({"t":"x"})")) == "fake/say");
  CHECK(client.read_resource("capsem://a/x://y/z").ok());
  CHECK(client.get_prompt("a__p").ok());
  CHECK(client.call_tool("a__none").kind == Kind::refused);
  CHECK(client.refresh("[" + server("b", {"--tool", "other"}) + "]").ok());
  CHECK(text_of(client.call_tool("b__other")) == "fake/other");
  const pid_t pid = client.pid();
  CHECK(client.shutdown().ok());
  CHECK(::kill(pid, 0) == -1);
}

TEST_CASE(
    "A23 if the program is killed with ten pending calls, all fail at once and the next call "
    "works") {
  const Home home;
  Client client(real(server("a", {"--tool", "say", "--tool", "hang", "--hang", "tool:hang"})));
  REQUIRE(client.call_tool("a__say").ok());
  std::vector<std::future<Reply>> pending;
  for (int i = 0; i < 10; ++i) {
    pending.push_back(std::async(std::launch::async, [&] { return client.call_tool("a__hang"); }));
  }
  REQUIRE(client.call_tool("a__say").ok());
  while (client.pending() < 10) std::this_thread::yield();
  const pid_t killed = client.pid();
  ::kill(killed, SIGKILL);
  for (auto &reply : pending) {
    const Kind kind = reply.get().kind;
    CHECK((kind == Kind::lost || kind == Kind::not_sent));
  }
  CHECK(text_of(client.call_tool("a__say")) == "fake/say");
  CHECK(client.pid() != killed);
}
