#include "route/task_ids.hpp"

#include <catch2/catch.hpp>

#include "mcp/scan.hpp"
#include "route/session.hpp"

namespace bulkhead {
namespace {

const std::string key(TextSealer::key_bytes, 'k');

Session client(const std::string &principal, const std::string &transport = "http") {
  Session session;
  session.principal = principal;
  session.transport = transport;
  return session;
}

}  // namespace

TEST_CASE("A client gets its own task back from the id, until the id expires") {
  const TaskIds ids(key);
  const Session ada = client("ada");
  const auto token = ids.seal({"builds", "compile", R"("task-1")"}, ada, 1'000);
  REQUIRE(token);
  CHECK(mcp::valid_json(*token));
  CHECK(token->find("task-1") == std::string::npos);
  const auto task = ids.open(*token, ada, 999);
  REQUIRE(task);
  CHECK(task->server == "builds");
  CHECK(task->tool == "compile");
  CHECK(task->id == R"("task-1")");
  CHECK_FALSE(ids.open(*token, ada, 1'000));
}

TEST_CASE("Equal ids of two servers become different ids") {
  const TaskIds ids(key);
  const Session ada = client("ada");
  const auto one = ids.seal({"one", "t", R"("1")"}, ada, 10);
  const auto two = ids.seal({"two", "t", R"("1")"}, ada, 10);
  REQUIRE((one && two));
  CHECK(*one != *two);
  CHECK(ids.open(*one, ada, 1)->server == "one");
  CHECK(ids.open(*two, ada, 1)->server == "two");
}

TEST_CASE("An id opens for no other principal, transport or key") {
  const TaskIds ids(key);
  const Session ada = client("ada");
  const auto token = ids.seal({"s", "t", R"("1")"}, ada, 10);
  REQUIRE(token);
  CHECK_FALSE(ids.open(*token, client("bob"), 1));
  CHECK_FALSE(ids.open(*token, client(""), 1));
  CHECK_FALSE(ids.open(*token, client("ada", "stdio"), 1));
  CHECK_FALSE(TaskIds(std::string(TextSealer::key_bytes, 'x')).open(*token, ada, 1));
  CHECK_FALSE(TaskIds("").open(*token, ada, 1));
  // Another process with the same key, as after a restart of the endpoint.
  CHECK(TaskIds(key).open(*token, ada, 1));
}

TEST_CASE("An id for a connection opens only in the process that has the connection") {
  const TaskIds ids(key);
  const Session ada = client("ada");
  const auto token = ids.seal({"s", "t", R"("1")", 7}, ada, 10);
  REQUIRE(token);
  CHECK(ids.open(*token, ada, 1)->connection == 7);
  CHECK_FALSE(TaskIds(key).open(*token, ada, 1));
  const auto any = ids.seal({"s", "t", R"("1")"}, ada, 10);
  REQUIRE(any);
  CHECK(TaskIds(key).open(*any, ada, 1)->connection == 0);
}

TEST_CASE("Truncated, extended and changed ids do not open") {
  const TaskIds ids(key);
  const Session ada = client("ada");
  const auto token = ids.seal({"s", "t", R"("1")"}, ada, 10);
  REQUIRE(token);
  for (std::size_t size = 0; size + 1 < token->size(); ++size) {
    CHECK_FALSE(ids.open(token->substr(0, size) + '"', ada, 1));
  }
  for (std::size_t at = 1; at + 1 < token->size(); ++at) {
    std::string changed = *token;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    CHECK_FALSE(ids.open(changed, ada, 1));
  }
  CHECK_FALSE(ids.open(token->substr(0, token->size() - 1) + "AAAA\"", ada, 1));
  CHECK_FALSE(ids.open("7", ada, 1));
  CHECK_FALSE(ids.open("", ada, 1));
  CHECK_FALSE(ids.open(R"("task-1")", ada, 1));
}

TEST_CASE("Ids and names that are too long, or cannot be stored, are rejected") {
  const TaskIds ids(key);
  const Session ada = client("ada");
  const std::string most = '"' + std::string(TaskIds::max_id - 2, 'i') + '"';
  const std::string name(TaskIds::max_name, 'n');
  const auto token = ids.seal({name, name, most}, ada, 10);
  REQUIRE(token);
  CHECK(ids.open(*token, ada, 1)->id == most);
  CHECK_FALSE(ids.seal({"s", "t", '"' + std::string(TaskIds::max_id - 1, 'i') + '"'}, ada, 10));
  CHECK_FALSE(ids.seal({name + "n", "t", most}, ada, 10));
  CHECK_FALSE(ids.seal({"s", name + "n", most}, ada, 10));
  CHECK_FALSE(ids.seal({"s", std::string("t\0t", 3), R"("1")"}, ada, 10));
  CHECK_FALSE(ids.seal({"s", "t", "1"}, ada, 10));
}

}  // namespace bulkhead
