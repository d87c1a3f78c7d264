// Tests which server definitions are recognized as the gateway itself.
#include "formats/own_address.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead;

namespace {

using Words = std::vector<std::string_view>;
const std::vector<std::string> kOwnListens = {"127.0.0.1:8808", "[::1]:18808", "unix:/run/x", ""};

}  // namespace

TEST_CASE("a URL of the gateway is recognized in every loopback spelling, also in arguments") {
  for (const char *host : {"localhost", "LocalHost", "localhost.", "127.0.0.1", "127.1.2.3",
                           "[::1]", "[::]", "0.0.0.0", "user@localhost"}) {
    for (const char *port : {":8808", ":18808"}) {
      const std::string url = std::string("http://") + host + port + "/mcp";
      INFO(url);
      CHECK(is_this_gateway({url}, kOwnListens));
      CHECK(is_this_gateway({"npx", "-y", "mcp-remote", url}, kOwnListens));
      CHECK(is_this_gateway({"npx", "mcp-remote", "--url=" + url}, kOwnListens));
      const std::string script = "exec npx mcp-remote '" + url + "' --x";
      CHECK(is_this_gateway({"sh", "-c", script}, kOwnListens));
      CHECK_FALSE(is_this_gateway({url}, {"127.0.0.1:9"}));
    }
  }
  CHECK(is_this_gateway({"HTTP://localhost/mcp"}, {"127.0.0.1:80"}));
  CHECK(is_this_gateway({"https://localhost"}, {"127.0.0.1:443"}));
}

TEST_CASE("other URLs are not recognized as the gateway") {
  for (const char *url :
       {"http://localhost:8809/mcp", "http://localhost.example.com:8808/mcp", "http://localhost/",
        "http://127.example.com:8808/", "http://10.0.0.1:8808/mcp", "https://h/?x=localhost:8808",
        "postgres://localhost:8808/db", "http://[::2]:8808/", "localhost:8808"}) {
    INFO(url);
    CHECK_FALSE(is_this_gateway({url}, kOwnListens));
    CHECK_FALSE(is_this_gateway({"npx", "mcp-remote", url}, kOwnListens));
  }
}

TEST_CASE("a command line that runs `bulkhead stdio` is recognized, also behind other programs") {
  for (const Words &words :
       {Words{"bulkhead", "stdio"}, Words{"/opt/bin/bulkhead", "relay"},
        Words{"/usr/bin/env", "bulkhead", "stdio"},
        Words{"/usr/bin/env", "A=b", "bulkhead", "stdio"},
        Words{"bash", "-c", "cd /x && exec /opt/bulkhead  stdio --own"},
        Words{"sh", "-c", "\"$HOME/bin/bulkhead\" 'stdio'"}, Words{"sh", "-c", "bulkhead stdio"},
        Words{"env", "bulkhead", "--profile", "p", "stdio"}})
    CHECK(is_this_gateway(words, {}));
  for (const Words &words :
       {Words{"npx", "server", "--dir", "/opt/bulkhead", "--transport", "stdio"},
        Words{"npx", "server", "/opt/bulkhead"}, Words{"npx", "server", "stdio"}, Words{},
        Words{"uv", "--directory", "/home/me/bulkhead", "run", "server", "stdio"},
        Words{"docker", "run", "--mount", "type=bind,src=/opt/bulkhead", "server", "stdio"},
        Words{"npx", "server", "/opt/bulkhead", "x", "stdio"},
        Words{"https://gw.corp.example/bulkhead"}, Words{"http://x/?u=/bulkhead"},
        Words{"bulkhead-notes", "stdio"}, Words{"npx", "stdio", "bulkhead"}})
    CHECK_FALSE(is_this_gateway(words, {}));
}
