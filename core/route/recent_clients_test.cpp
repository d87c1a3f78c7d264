// Tests RecentClients: grouping by name, process and transport, expiry, and the limit.
#include "route/recent_clients.hpp"

#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

using bulkhead::ClientStatus;
using bulkhead::RecentClients;
using bulkhead::Session;

namespace {

Session request(const std::string &name, const std::string &process, std::uint64_t calls) {
  Session out;
  if (!name.empty()) out.claimed_name = std::make_shared<const std::string>(name);
  out.process_name = process;
  out.transport = "http";
  out.calls = calls;
  return out;
}

std::vector<ClientStatus> list(const RecentClients &clients, std::uint64_t now_ns) {
  std::vector<ClientStatus> out;
  clients.append_to(&out, now_ns);
  return out;
}

}  // namespace

TEST_CASE("requests with the same names and transport are one client") {
  RecentClients clients;
  clients.add(request("editor", "node", 1), 10);
  clients.add(request("editor", "python", 1), 11);
  clients.add(request("", "node", 0), 12);
  clients.add(request("editor", "node", 2), 13);
  Session framed = request("editor", "node", 5);
  framed.transport = "vsock";
  clients.add(framed, 14);
  const auto listed = list(clients, 14);
  REQUIRE(listed.size() == 4);
  CHECK(listed[0].claimed_name == "editor");
  CHECK(listed[0].process_name == "node");
  CHECK(listed[0].transport == "http");
  CHECK(listed[0].protocol == "2026-07-28");
  CHECK(listed[0].calls == 3);
  CHECK(listed[0].sessions == 0);
  CHECK(listed[1].process_name == "python");
  CHECK(listed[1].calls == 1);
  CHECK(listed[2].claimed_name == "");
  CHECK(listed[3].transport == "vsock");
  CHECK(listed[3].calls == 5);
}

TEST_CASE("a client without recent requests is not listed") {
  RecentClients clients;
  clients.add(request("a", "", 1), 0);
  clients.add(request("b", "", 1), 1);
  CHECK(list(clients, RecentClients::listed_ns).size() == 2);
  const auto later = list(clients, RecentClients::listed_ns + 1);
  REQUIRE(later.size() == 1);
  CHECK(later[0].claimed_name == "b");
  clients.add(request("a", "", 1), RecentClients::listed_ns + 2);
  CHECK(list(clients, RecentClients::listed_ns + 2).size() == 1);
}

TEST_CASE("at the limit, the client that has been idle longest is replaced") {
  RecentClients clients;
  for (std::size_t i = 0; i < RecentClients::max_clients; ++i) {
    clients.add(request("n" + std::to_string(i), "", 1), 100 + i);
  }
  clients.add(request("n0", "", 1), 1'000);
  for (int i = 0; i < 2; ++i) clients.add(request("new", "", 1), 1'001);
  const auto listed = list(clients, 1'001);
  REQUIRE(listed.size() == RecentClients::max_clients);
  CHECK(listed[0].claimed_name == "n0");
  CHECK(listed[0].calls == 2);
  CHECK(listed[1].claimed_name == "new");
  CHECK(listed[1].calls == 2);
  std::vector<ClientStatus> nearly_full(ClientStatus::max_listed - 1);
  clients.append_to(&nearly_full, 1'001);
  CHECK(nearly_full.size() == ClientStatus::max_listed);
}
