// Usage: embed PLUGIN_FOLDER. Runs a host in this process with two plugins, and calls one tool of
// each plugin.
#include <cstdio>
#include <string>
#include <string_view>

#include "host.hpp"

namespace {

int failed(std::string_view what) {
  std::fprintf(stderr, "embed: %.*s\n", static_cast<int>(what.size()), what.data());
  return 1;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) return failed("usage: embed PLUGIN_FOLDER");

  // This profile is created in code. load_profile() loads a profile from a file.
  bulkhead::Profile profile;
  profile.plugin_dirs = {argv[1]};
  for (const std::string name : {"hello-tools", "hello-tools-c"}) {
    bulkhead::PluginUse use;
    use.id = use.plugin = name;
    use.config_json = "{}";
    profile.tools.push_back(use);
  }

  bulkhead::HostOptions options;
  options.log = [](bulkhead::LogLevel, std::string_view component, std::string_view text) {
    std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(component.size()), component.data(),
                 static_cast<int>(text.size()), text.data());
  };
  auto host = bulkhead::Host::create(std::move(profile), std::move(options));
  if (!host) return failed(host.error().text);
  if (auto started = (*host)->start(); !started) return failed(started.error().text);

  // This client's messages take the same path as messages from a transport.
  std::string answer;
  auto client = (*host)->connect([&](std::string_view message) {
    if (message.find("\"id\":") != message.npos) answer = message;  // skips notifications
  });
  const auto ask = [&](const std::string &message) {
    answer.clear();
    client->send(message);
    return (*host)->run_until([&] { return !answer.empty(); }, 5000);
  };
  ask(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",)"
      R"("capabilities":{},"clientInfo":{"name":"embed","version":"1"}}})");
  client->send(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  for (const std::string tool : {"hello-tools__echo", "hello-tools-c__echo"}) {
    ask(R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":")" + tool +
        R"(","arguments":{"say":"hi"}}})");
    std::printf("%s\n", answer.c_str());
    if (answer.find(R"({\"say\":\"hi\"})") == answer.npos) return failed("wrong answer");
  }
  return 0;
}
