// Tests which compartments a profile requires, and which privileges they have.
#include "supervisor/plan.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>

namespace bulkhead::program {
namespace {

const Slice &find(const std::vector<Slice> &slices, const std::string &name) {
  const auto at = std::find_if(slices.begin(), slices.end(),
                               [&](const Slice &slice) { return slice.name == name; });
  REQUIRE(at != slices.end());
  return *at;
}

PluginUse use(std::string id, std::string plugin, std::vector<std::string> grants = {}) {
  PluginUse out;
  out.id = std::move(id);
  out.plugin = std::move(plugin);
  out.config_json = "{}";
  out.grants = std::move(grants);
  return out;
}

ServerDef server(std::string name, std::string url, std::string compartment) {
  ServerDef out;
  out.name = std::move(name);
  out.type = "http";
  out.url = std::move(url);
  out.compartment = std::move(compartment);
  return out;
}

struct NoProxy {
  NoProxy() {
    for (const char *name :
         {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
      ::unsetenv(name);
    }
  }
};

using Ports = std::vector<std::uint16_t>;

}  // namespace

TEST_CASE("third-party tools plugins have network access only if granted") {
  Profile profile;
  profile.tools = {use("none", "tools-x"), use("any", "tools-x", {"network"}),
                   use("some", "tools-x", {"network:443", "network:8443"}),
                   use("both", "tools-x", {"network:443", "network"})};
  const auto slices = plan_compartments(profile, {});
  CHECK_FALSE(find(slices, "none").privileges.network);
  CHECK(find(slices, "any").privileges.network);
  CHECK(find(slices, "any").privileges.ports.empty());
  CHECK(find(slices, "some").privileges.network);
  CHECK(find(slices, "some").privileges.ports == Ports{443, 8443});
  CHECK(find(slices, "both").privileges.ports.empty());
}

TEST_CASE("builtin-files may write to configured folders and to its snapshot folder") {
  const auto rights = [](const char *config) {
    Profile profile;
    profile.tools = {use("files", "builtin-files")};
    profile.tools.front().config_json = config;
    const SlicePrivileges may = find(plan_compartments(profile, {}), "files").privileges;
    std::string out = "r";
    for (const std::string &path : may.read) out += " " + path;
    out += " w";
    for (const std::string &path : may.write) out += " " + path;
    return out;
  };
  CHECK(rights("{}") == "r . w");
  CHECK(rights(R"({"path":"/a"})") == "r /a w");
  CHECK(rights(R"({"path":"/a","write":true})") == "r w /a");
  CHECK(rights(R"({"workspaces":[{"name":"a","path":"/a"},{"name":"b","path":"/b","write":true},
                  {"name":"c","path":"/c","write":false}]})") == "r /a /c w /b");
  CHECK(rights(R"({"path":"/a","snapshots":{"path":"/s"}})") == "r /a w /s");
}

TEST_CASE("third-party connectors have network access, third-party policies only if granted") {
  Profile profile;
  profile.policies = {use("mine", "policy-x"), use("far", "policy-x", {"network:8181"})};
  profile.connectors["ws"] = "connector-ws";
  profile.servers = {server("s", "ws://h/", "")};
  profile.servers.front().type = "ws";
  const auto slices = plan_compartments(profile, {});
  CHECK_FALSE(find(slices, "policy.mine").privileges.network);
  CHECK(find(slices, "policy.far").privileges.ports == Ports{8181});
  CHECK(find(slices, "connector-ws").privileges.network);
}

TEST_CASE("an HTTP server with a private compartment has a port rule") {
  const NoProxy no_proxy;
  Profile profile;
  profile.connectors["http"] = "connector-http";
  profile.servers = {server("a", "https://h/mcp", "own"), server("b", "http://h:8931/", "own"),
                     server("c", "http://[::1]:99/x?y=1:2", "own"), server("d", "http://h/", "")};
  const auto ports = [&](const std::string &name) {
    return find(plan_compartments(profile, {}), name).privileges.ports;
  };
  CHECK(ports("aggregator.a") == Ports{53, 80, 443});
  CHECK(ports("aggregator.b") == Ports{53, 80, 443, 8931});
  CHECK(ports("aggregator.c") == Ports{53, 80, 443, 99});
  CHECK(ports("aggregator").empty());
  ::setenv("https_proxy", "http://proxy:3128", 1);
  CHECK(ports("aggregator.b").empty());
  ::unsetenv("https_proxy");
}

}  // namespace bulkhead::program
