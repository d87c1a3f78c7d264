#include "approve/approvals_view.hpp"

#include "approve/notifier.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace bulkhead::program;

namespace {

SeenQuestion question(const std::string &id) {
  SeenQuestion q;
  q.id = id + std::string(28, '0');
  q.server = "s";
  q.name = "tool-" + id;
  q.arguments = "{}";
  return q;
}

using Kind = ApprovalsView::Action::Kind;

}  // namespace

TEST_CASE("approval requests are parsed and made printable") {
  const auto got = read_questions(
      "x.sock",
      R"({"waiting":2,"pending":[{"id":"ab","server":"s","name":"t\u001b[2J","arguments":"{\"a\":1}",)"
      R"("claimed_name":"Claude\u001b[2J Code","process_name":"node",)"
      R"("meta":"{\"force\":1}","extra":"{\"task\":1}",)"
      R"("arguments_cut":true,"arguments_bytes":70000,"expires_in_ms":1500,"rule":"r"},{"id":"cd"}]})");
  REQUIRE(got.has_value());
  REQUIRE(got->size() == 2);
  const SeenQuestion &q = got->at(0);
  CHECK(q.socket == "x.sock");
  CHECK(q.name == "t?[2J");
  CHECK(q.claimed_name == "Claude?[2J Code");
  CHECK(questions_table(*got).find("CLAIMED") != std::string::npos);
  CHECK(questions_table(*got).find("node    Claude?[2J Code") != std::string::npos);
  CHECK(q.arguments == R"({"a":1})");
  CHECK(q.arguments_cut);
  CHECK(q.arguments_bytes == 70000);
  CHECK(questions_table(*got).find(R"({"a":1} _meta: {"force":1} other members: {"task":1})") !=
        std::string::npos);
  ApprovalsView view;
  view.show(*got, 0);
  CHECK(view.draw(80, 40).find(R"(_meta: {"force":1})") != std::string::npos);
  CHECK(view.draw(80, 40).find(R"(claims     "Claude?[2J Code" (not verified))") !=
        std::string::npos);
  CHECK(view.draw(80, 40).find(R"(other members: {"task":1})") != std::string::npos);
  CHECK(questions_table(*got).find("2 s") != std::string::npos);
  CHECK_FALSE(read_questions("x", "[]").has_value());
  CHECK_FALSE(read_questions("x", R"({"error":"no"})").has_value());
  CHECK_FALSE(read_questions("x", "{").has_value());
  CHECK(read_questions("x", R"({"pending":[]})")->empty());
}

TEST_CASE("granted approvals are parsed") {
  const auto got = read_questions(
      "x.sock",
      R"({"waiting":0,"pending":[],"granted":[{"id":"abcdef0123","server":"s","name":"t","arguments":"{\"a\":1}",)"
      R"("claimed_name":"me","transport":"http","scope":"tool for 10 minutes","expires_in_ms":1500},)"
      R"({"id":"cd","server":"s","name":"u","arguments":"{\"b\":1}","scope":"session"}]})",
      "granted");
  REQUIRE(got.has_value());
  REQUIRE(got->size() == 2);
  CHECK(got->at(0).scope == "tool for 10 minutes");
  const std::string table = grants_table(*got);
  CHECK(table.find("abcdef01  s       t     tool for 10 minutes  http    me        2 s  any\n") !=
        std::string::npos);
  CHECK(table.find(R"(-  {"b":1})") != std::string::npos);
  CHECK(grants_table({}).empty());
}

TEST_CASE("a key resolves the selected request") {
  ApprovalsView view;
  CHECK(view.key("a", 0).kind == Kind::none);
  view.show({question("aaaa"), question("bbbb")}, 1000);
  CHECK(view.key("a", 1000 + ApprovalsView::settle_ms - 1).kind == Kind::none);
  auto action = view.key("a", 1000 + ApprovalsView::settle_ms);
  REQUIRE(action.kind == Kind::answer);
  CHECK(action.question.id == question("aaaa").id);
  CHECK(action.allow);
  CHECK(action.scope == 'a');
  CHECK(view.key("s", 2000).scope == 's');
  CHECK(view.key("t", 2000).scope == 't');
  CHECK(view.key("t", 2000).allow);
  CHECK_FALSE(view.key("d", 2000).allow);
  CHECK(view.key("x", 2000).kind == Kind::none);

  view.key("j", 2000);
  CHECK(view.key("d", 2000).question.id == question("bbbb").id);
  view.key("\x1b[B", 2000);
  CHECK(view.key("d", 2000).question.id == question("bbbb").id);
  view.key("\x1b[A", 2000);
  CHECK(view.key("d", 2000).question.id == question("aaaa").id);
  CHECK(view.key("q", 2000).kind == Kind::quit);
  CHECK(view.key("\x03", 2000).kind == Kind::quit);
}

TEST_CASE("a key is ignored just after the selection has changed") {
  ApprovalsView view;
  view.show({question("aaaa"), question("bbbb")}, 0);
  view.show({question("cccc"), question("aaaa")}, 5000);
  CHECK(view.key("a", 5001).question.id == question("aaaa").id);  // the selection is unchanged
  view.show({question("cccc")}, 6000);
  CHECK(view.key("a", 6001).kind == Kind::none);
  CHECK(view.draw(80, 24).find("is new: read it") != std::string::npos);
  CHECK(view.key("a", 6000 + ApprovalsView::settle_ms).question.id == question("cccc").id);
}

TEST_CASE("at the end of a watch, the pending requests and how to resolve them are shown") {
  CHECK(pending_text({}).empty());
  const std::string one = pending_text({question("aaaa")});
  CHECK(one.starts_with("1 call is still waiting"));
  const std::string two = pending_text({question("aaaa"), question("bbbb")});
  CHECK(two.starts_with("2 calls are still waiting"));
  for (const char *part :
       {"aaaa", "tool-aaaa", "bbbb", "tool-bbbb", "approvals allow ID", "deny"}) {
    CHECK(two.find(part) != std::string::npos);
  }
}

TEST_CASE("the screen fits the terminal and reports omitted arguments") {
  ApprovalsView view;
  CHECK(view.draw(80, 24).find("No calls are waiting") != std::string::npos);
  std::vector<SeenQuestion> many;
  for (int i = 0; i < 50; ++i) many.push_back(question(std::to_string(1000 + i)));
  many[0].arguments.assign(16'000, 'x');
  view.show(many, 0);
  const std::string screen = view.draw(60, 24);
  CHECK(std::count(screen.begin(), screen.end(), '\n') < 24);
  CHECK(screen.find("50 calls are waiting") != std::string::npos);
  CHECK(screen.find("NOT ALL ARGUMENTS FIT") != std::string::npos);
  view.show({question("aaaa")}, 0);
  CHECK(view.draw(60, 24).find("NOT ALL") == std::string::npos);
  CHECK(view.draw(60, 24).find("tool-aaaa") != std::string::npos);
}

TEST_CASE("a notification names the call without its arguments, as plain text") {
  SeenQuestion q = question("aaaa");
  q.name = "read<b>&\nx";
  q.server = "files";
  q.rule = "r";
  q.transport = "http";
  q.process_name = "node";
  q.claimed_name = "<i>Claude";
  q.arguments = R"({"secret":"canary"})";
  q.meta = q.extra = q.reason = "canary";
  const std::string text = notification_text(q);
  CHECK(text ==
        "read&lt;b&gt;&amp;?x of server files, called by node (claims to be \"&lt;i&gt;Claude\"), "
        "rule r. To answer: bulkhead "
        "approvals");
  q.name = std::string(5000, 'x');
  CHECK(notification_text(q).size() < 400);
}
