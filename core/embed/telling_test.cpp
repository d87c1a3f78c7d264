// Tests clients whose notification callback connects more clients. A notification is sent once to
// each client that was already connected.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "embed/policy_world.hpp"

using namespace bulkhead;

namespace {

constexpr const char *changed = "notifications/tools/list_changed";

std::size_t count(const Client &c, std::string_view what) {
  return static_cast<std::size_t>(
      std::count_if(c.got.begin(), c.got.end(),
                    [&](const std::string &m) { return m.find(what) != std::string::npos; }));
}

// Makes `c` connect many clients, with various capabilities, when it first receives a message that
// contains `when`.
void bring_others(World &w, Client &c, std::string_view when,
                  std::vector<std::unique_ptr<Client>> &others) {
  c.on_message = [&w, &c, when, &others] {
    if (c.got.back().find(when) == std::string::npos) return;
    const auto once = std::exchange(c.on_message, nullptr);  // keeps the running function alive
    for (const char *caps : {"{}", R"({"sampling":{}})", R"({"elicitation":{}})",
                             R"({"sampling":{},"elicitation":{}})", R"({"sampling":{"tools":{}}})",
                             R"({"sampling":{"context":{}}})"}) {
      for (int i = 0; i < 4; ++i) others.push_back(std::make_unique<Client>(*w.host, caps));
    }
    for (auto &other : others) {
      other->end->send(
          R"({"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"debug"}})");
      other->got.clear();
    }
  };
}

}  // namespace

TEST_CASE("clients may connect while an unattributed server log message is sent") {
  World w;
  w.up.capabilities["a"] = R"({"tools":{},"logging":{}})";
  w.start();
  std::vector<std::unique_ptr<Client>> others;
  Client one(*w.host), two(*w.host), three(*w.host);
  for (Client *c : {&one, &two, &three}) {
    c->end->send(
        R"({"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"debug"}})");
  }
  bring_others(w, one, "hello", others);
  w.up.send(
      "a",
      R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}})");
  for (const Client *c : {&one, &two, &three}) CHECK(count(*c, "hello") == 1);
  CHECK(others.size() == 24);
  for (const auto &c : others) CHECK(count(*c, "hello") == 0);
}

TEST_CASE("clients with other lists may connect while list changes are announced") {
  World w;
  w.start();
  std::vector<std::unique_ptr<Client>> others;
  Client one(*w.host), two(*w.host, R"({"roots":{},"sampling":{}})"),
      three(*w.host, R"({"elicitation":{}})");
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  for (Client *c : {&one, &two, &three}) c->end->send(list_tools);
  bring_others(w, one, changed, others);
  w.profile.naming.separator = "--";
  REQUIRE(w.host->apply(w.profile).has_value());
  REQUIRE(w.turn_until([&] { return count(three, changed) != 0; }));
  CHECK(others.size() == 24);
  for (const Client *c : {&one, &two, &three}) CHECK(count(*c, changed) == 1);
}

TEST_CASE("clients with other lists may connect while rule changes are announced") {
  PolicyWorld w(BH_POLICY_DECIDES);
  w.judge.judge = nullptr;
  w.start();
  std::vector<std::unique_ptr<Client>> others;
  Client one(*w.host), two(*w.host, R"({"sampling":{}})"), three(*w.host, R"({"elicitation":{}})");
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  for (Client *c : {&one, &two, &three}) c->end->send(list_tools);
  bring_others(w, one, changed, others);
  w.judge.changed();
  REQUIRE(w.turn_until([&] { return count(three, changed) != 0; }));
  CHECK(others.size() == 24);
  for (const Client *c : {&one, &two, &three}) CHECK(count(*c, changed) == 1);
}
