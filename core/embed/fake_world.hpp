// Runs a gateway inside the test, with local clients and with servers that the fake connector
// simulates.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "embed/fake_connector.hpp"
#include "host.hpp"

namespace bulkhead {

struct Client {
  std::vector<std::string> got;
  std::unique_ptr<LocalClient> end;
  std::function<void()> on_message;  // called after each message

  explicit Client(Host &host, const std::string &capabilities = "{}",
                  const std::string &revision = "2025-06-18",
                  const std::string &claimed_name = "t") {
    end = host.connect([this](std::string_view message) {
      got.emplace_back(message);
      if (on_message) on_message();
    });
    end->send(R"({"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":")" +
              revision + R"(","capabilities":)" + capabilities + R"(,"clientInfo":{"name":")" +
              claimed_name + R"(","version":"1"}}})");
    REQUIRE(got.size() == 1);
    REQUIRE(got[0].find("\"result\"") != std::string::npos);
    got.clear();
  }
  void call(const std::string &id, const std::string &tool, const std::string &more = "") {
    end->send(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"tools/call","params":{"name":")" +
              tool + "\"" + more + "}}");
  }
  bool has(std::string_view text) const {
    for (const std::string &m : got) {
      if (m.find(text) != std::string::npos) return true;
    }
    return false;
  }
};

// Returns the definition of a fake server. Its protocol revision is fixed, so a connection starts
// with initialize.
inline ServerDef server(const std::string &name) {
  ServerDef def;
  def.protocol = ProtocolPin::v2025_11_25;
  def.name = name;
  def.type = "fake";
  return def;
}

struct World {
  Profile profile;
  std::unique_ptr<Host> host;
  FakeUpstreams &up = FakeUpstreams::get();

  World() {
    up = FakeUpstreams{};
    up.tools["a"] = R"([{"name":"x"},{"name":"y"}])";
    up.tools["b"] = R"([{"name":"x"}])";
    profile.servers = {server("a"), server("b")};
    profile.connectors["fake"] = "fake-connector";
    profile.limits.grace_ms = 30;
    profile.limits.retry_min_ms = 20;
    profile.limits.first_list_wait_ms = 300;
    profile.limits.shutdown_grace_ms = 50;
  }
  void start() {
    HostOptions options;
    options.static_plugins = {{"fake-connector", bh_static_entry_FakeConnector}};
    auto created = Host::create(profile, std::move(options));
    REQUIRE(created.has_value());
    host = std::move(*created);
    REQUIRE(host->start().has_value());
    REQUIRE(host->run_until([&] { return host->settled(); }, 20'000));
  }
  bool turn_until(const std::function<bool()> &done, std::uint64_t ms = 20'000) {
    return host->run_until(done, ms);
  }
  void turn(std::uint64_t ms = 0) {
    host->run_until([] { return false; }, ms);
  }
  ServerStatus status(std::string_view name) {
    for (const ServerStatus &s : host->status().servers) {
      if (s.name == name) return s;
    }
    FAIL("no such server");
    return {};
  }
};

inline constexpr const char *list_tools = R"({"jsonrpc":"2.0","id":9,"method":"tools/list"})";

}  // namespace bulkhead
