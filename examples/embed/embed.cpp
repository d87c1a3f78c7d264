// Usage: embed PLUGIN_FOLDER PLUGIN... Runs a gateway in this process with the tools plugins of
// these names, and calls the tool `echo` of each of them.
#include <bulkhead/host.hpp>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

int failed(std::string_view what) {
  std::fprintf(stderr, "embed: %.*s\n", static_cast<int>(what.size()), what.data());
  return 1;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 3) return failed("usage: embed PLUGIN_FOLDER PLUGIN...");

  bulkhead::Profile profile;
  profile.plugin_dirs = {argv[1]};
  for (int i = 2; i < argc; ++i) {
    bulkhead::PluginUse use;
    use.id = use.plugin = argv[i];
    use.config_json = "{}";
    profile.tools.push_back(use);
  }
  bulkhead::HostOptions options;
  options.log = [](bulkhead::LogLevel, std::string_view, std::string_view text) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
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
  for (int i = 2; i < argc; ++i) {
    const std::string tool = std::string(argv[i]) + "__echo";
    ask(R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":")" + tool +
        R"(","arguments":{"say":"hi"}}})");
    std::printf("%s\n", answer.c_str());
    if (answer.find("hi") == answer.npos) return failed("the answer of " + tool + " is wrong");
  }
  return 0;
}
