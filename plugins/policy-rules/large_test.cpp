// Tests messages that are too large for the reactor thread, with the whole plugin in a fake host.
#include <bulkhead/abi/ext/policy.h>
#include <bulkhead/abi/host.h>
#include <bulkhead/abi/plugin.h>

#include <catch2/catch.hpp>

#include <bulkhead/testing/fake_host.hpp>
#include <cstdlib>
#include <deque>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "json_text.hpp"
#include "rules_test.hpp"

extern "C" const bh_entry *bh_static_entry_PolicyRules(void);

namespace {

// The number of allocations on this thread that succeed before one fails. If negative, none fails.
thread_local int allocations_left = -1;

// Allocations succeed while an object of this class exists.
class SafeAllocations {
 public:
  SafeAllocations() : left_(std::exchange(allocations_left, -1)) {}
  ~SafeAllocations() { allocations_left = left_; }
  SafeAllocations(const SafeAllocations &) = delete;
  SafeAllocations &operator=(const SafeAllocations &) = delete;

 private:
  const int left_;
};

}  // namespace

#ifndef __has_feature
#define __has_feature(x) 0  // defined only by clang
#endif
// ThreadSanitizer replaces operator new itself, so that no allocation fails.
#if !defined(__SANITIZE_THREAD__) && !__has_feature(thread_sanitizer)

// Not inlined, because the compiler would compare operator delete with an operator new that it
// sees.
[[gnu::noinline]] void *operator new(std::size_t size) {
  const bool fails = allocations_left == 0;
  if (allocations_left >= 0) --allocations_left;
  if (void *p = fails ? nullptr : std::malloc(size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void *p) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void *p, std::size_t) noexcept {
  std::free(p);
}

#endif

namespace {

using bulkhead::rules::test::rules;

// Returns a JSON object that contains a string of `bytes` bytes and the members in `more`.
std::string large(std::string_view more = "", std::size_t bytes = 200'000) {
  return "{\"text\":\"" + std::string(bytes, 'x') + "\"" + std::string(more) + "}";
}

struct World {
  struct Verdict {
    std::uint64_t exchange;
    std::uint32_t verdict;
    std::string rule, reason, text;
    std::thread::id thread;
  };
  bh::testing::FakeHost host;
  bh_host_policy host_policy{};
  static inline std::vector<Verdict> later;
  const bh_plugin *plugin = nullptr;
  const bh_policy *policy = nullptr;
  bh_verdict out{};
  bh_error error = bh::make_error();
  // Work that the plugin has given to run_blocking().
  struct Work {
    void (*run)(void *);
    void (*done)(void *);
    void *arg;
    std::thread::id thread;  // the thread that ran it
  };
  static inline std::deque<Work> works;
  static inline bool skips_work = false;  // work does nothing
  static inline bool pool_is_full = false;
  static inline int allocations = -1;  // allocations_left at the start of each conclusion
  static inline const bh_host_executor *real_executor = nullptr;
  bh_host_executor executor{};

  explicit World(const std::string &config) {
    later.clear();
    works.clear();
    skips_work = pool_is_full = false;
    allocations = -1;
    real_executor = static_cast<const bh_host_executor *>(
        host.host()->get_ext(host.host()->ctx, BH_EXT_HOST_EXECUTOR));
    executor = *real_executor;
    executor.run_blocking = run_blocking;
    host.add_ext(BH_EXT_HOST_EXECUTOR, &executor);
    host_policy.size = sizeof host_policy;
    host_policy.decided = [](void *, std::uint64_t exchange, const bh_verdict *v) -> bh_status {
      const SafeAllocations safe;
      later.push_back({exchange, v->verdict, std::string(bh::view(v->rule)),
                       std::string(bh::view(v->reason)), std::string(bh::view(v->arguments)),
                       std::this_thread::get_id()});
      return BH_OK;
    };
    host.add_ext(BH_EXT_HOST_POLICY, &host_policy);
    REQUIRE(bh_static_entry_PolicyRules()->create("policy-rules", host.host(), &plugin, &error) ==
            BH_OK);
    REQUIRE(plugin->configure(plugin->self, bh::str(config), &error) == BH_OK);
    REQUIRE(plugin->start(plugin->self, &error) == BH_OK);
    policy = static_cast<const bh_policy *>(plugin->get_ext(plugin->self, BH_EXT_POLICY));
  }
  ~World() {
    plugin->stop(plugin->self);
    plugin->destroy(plugin->self);
    CHECK(host.faults().empty());
  }

  static bh_status run_blocking(void *ctx, void (*run)(void *), void (*done)(void *), void *arg) {
    const SafeAllocations safe;
    if (pool_is_full) return BH_E_LIMIT;
    works.push_back({run, done, arg, {}});
    const auto begin = [](void *work) {
      Work &one = *static_cast<Work *>(work);
      one.thread = std::this_thread::get_id();
      if (!skips_work) one.run(one.arg);
    };
    const auto end = [](void *work) {
      const Work &one = *static_cast<Work *>(work);
      const SafeAllocations inner;
      allocations_left = std::exchange(allocations, -1);
      one.done(one.arg);
    };
    return real_executor->run_blocking(ctx, begin, end, &works.back());
  }

  static bh_policy_request request(std::uint64_t exchange, std::string_view tool,
                                   std::string_view arguments) {
    bh_policy_request r{};
    r.size = sizeof r;
    r.exchange = exchange;
    r.method = bh::str("tools/call");
    r.server = bh::str("files");
    r.name = bh::str(tool);
    r.arguments = bh::str(arguments);
    return r;
  }
  // The arguments are freed before the verdict arrives, so the plugin must have copied them.
  bh_status decide(std::uint64_t exchange, std::string tool, std::string arguments,
                   std::uint32_t event = BH_EVENT_CALL, std::string extra = {}) {
    bh_policy_request r = request(exchange, tool, arguments);
    r.event = event;
    r.extra = bh::str(extra);
    return asked([&] { return policy->decide(plugin->self, &r, &out, &error); });
  }
  bh_status observe(std::uint64_t exchange, std::string tool, std::string result,
                    std::uint32_t flags = 0) {
    bh_policy_request r = request(exchange, tool, {});
    r.flags = flags;
    return asked([&] { return policy->observe(plugin->self, &r, bh::str(result), &out, &error); });
  }
  template <class Ask>
  bh_status asked(Ask ask) {
    out = {};
    out.size = sizeof out;
    error = bh::make_error();
    return ask();
  }
  const Verdict &answered(std::size_t n = 1) {
    REQUIRE(host.run_until([&] { return later.size() >= n; }, 120'000));
    return later[n - 1];
  }
};

const std::string kReads = rules(R"j({
  "by-name": {"on": "mcp.request", "if": "mcp.request.tool_name == 'drop'", "decision": "block", "priority": 1},
  "free": {"on": "mcp.request", "if": "mcp.request.tool_name == 'free'", "decision": "allow", "priority": 2},
  "secret": {"on": "mcp.request", "if": "mcp.request.arguments.kind == 'secret'", "decision": "block", "priority": 3},
  "shout": {"on": "mcp.request", "if": "mcp.request.tool_name == 'shout'", "decision": "rewrite", "priority": 4,
            "rewrite_target": "arguments.kind =~ \"loud\"", "rewrite_value": "quiet"},
  "result": {"on": "mcp.response", "if": "mcp.response.text.contains('token')", "decision": "block"},
  "note": {"on": "mcp.notification", "if": "mcp.notification.text.contains('token')", "decision": "block"}
})j");

}  // namespace

TEST_CASE(
    "large arguments are evaluated on another thread, with the same verdict as small arguments") {
  World w(kReads);
  for (const std::string &kind : {std::string("secret"), std::string("plain")}) {
    INFO(kind);
    World::later.clear();
    const std::string member = ",\"kind\":\"" + kind + "\"";
    REQUIRE(w.decide(1, "write", "{\"a\":1" + member + "}") == BH_OK);
    const std::uint32_t small = w.out.verdict;
    const std::string rule(bh::view(w.out.rule));
    REQUIRE(w.decide(2, "write", large(member)) == BH_PENDING);
    CHECK(World::later.empty());
    const World::Verdict &verdict = w.answered();
    CHECK(verdict.exchange == 2);
    CHECK(verdict.verdict == small);
    CHECK(verdict.rule == rule);
    CHECK(verdict.thread == std::this_thread::get_id());
    CHECK(verdict.verdict == (kind == "secret" ? BH_VERDICT_BLOCK : BH_VERDICT_ALLOW));
  }
  REQUIRE(World::works.size() == 2);
  for (const World::Work &work : World::works) {
    CHECK(work.thread != std::thread::id());
    CHECK(work.thread != std::this_thread::get_id());
  }
}

TEST_CASE("nothing but the work on another thread evaluates a large message") {
  World w(kReads);
  World::skips_work = true;
  for (const bool decides : {true, false}) {
    INFO("decides " << decides);
    World::later.clear();
    const std::string text = large(R"(,"kind":"plain")");
    REQUIRE((decides ? w.decide(1, "write", text) : w.observe(1, "write", text)) == BH_PENDING);
    const World::Verdict &verdict = w.answered();
    CHECK(verdict.verdict == BH_VERDICT_BLOCK);
    CHECK(verdict.reason == "out of memory while evaluating the rules");
  }
}

TEST_CASE("after a reload, a large message is not evaluated while the pool is full") {
  World w(kReads);
  REQUIRE(w.decide(1, "write", large(R"(,"kind":"plain")")) == BH_PENDING);
  REQUIRE(w.policy->reconfigure(w.plugin->self, bh::str(rules("{}")), &w.error) == BH_OK);
  World::pool_is_full = true;
  const World::Verdict &verdict = w.answered();
  World::pool_is_full = false;
  CHECK(verdict.verdict == BH_VERDICT_BLOCK);
  CHECK(verdict.reason == "the pool for blocking work is full");
}

TEST_CASE("strings that no rule reads may have any size") {
  World w(rules(R"j({
    "by-name": {"on": "mcp.request", "if": "mcp.request.tool_name == 'drop'", "decision": "block"},
    "elsewhere": {"on": "mcp.request", "decision": "block",
                  "if": "mcp.request.server_name == 'other' && mcp.request.arguments.a == 1"}
  })j"));
  REQUIRE(w.decide(1, "drop", large()) == BH_OK);
  CHECK(w.out.verdict == BH_VERDICT_BLOCK);
  REQUIRE(w.decide(2, "keep", large()) == BH_OK);
  CHECK(w.out.verdict == BH_VERDICT_ALLOW);
  REQUIRE(w.observe(2, "keep", large()) == BH_OK);
}

TEST_CASE("rules are evaluated in the same order for a large message") {
  World w(kReads);
  const std::string secret = large(",\"kind\":\"secret\"");
  REQUIRE(w.decide(1, "drop", secret) == BH_PENDING);
  REQUIRE(w.decide(2, "free", secret) == BH_PENDING);
  REQUIRE(w.decide(3, "write", secret) == BH_PENDING);
  w.answered(3);
  CHECK(World::later[0].rule.ends_with("by-name"));
  CHECK(World::later[1].verdict == BH_VERDICT_ALLOW);
  CHECK(World::later[1].rule.ends_with("free"));
  CHECK(World::later[2].rule.ends_with("secret"));
}

TEST_CASE("a large message is rewritten like a small message") {
  World w(kReads);
  REQUIRE(w.decide(1, "shout", large(",\"kind\":\"loud\"")) == BH_PENDING);
  const World::Verdict &verdict = w.answered();
  CHECK(verdict.verdict == BH_VERDICT_REWRITE);
  CHECK(verdict.text == large(",\"kind\":\"quiet\""));
}

TEST_CASE("if memory is exhausted, a large message is rejected and the next one is evaluated") {
  bool failed = true;
  for (int allocations = 0; failed && allocations < 1000; ++allocations) {
    INFO(allocations);
    World w(kReads);
    REQUIRE(w.decide(1, "shout", large(",\"kind\":\"loud\"")) == BH_PENDING);
    REQUIRE(w.decide(2, "write", large(",\"kind\":\"plain\"")) == BH_PENDING);
    World::allocations = allocations;
    w.answered(2);
    failed = World::later[0].verdict == BH_VERDICT_BLOCK;
    CHECK(World::later[0].exchange == 1);
    if (failed) CHECK(World::later[0].reason == "out of memory while evaluating the rules");
    if (!failed) CHECK(World::later[0].verdict == BH_VERDICT_REWRITE);
    CHECK(World::later[1].exchange == 2);
    CHECK(World::later[1].verdict == BH_VERDICT_ALLOW);
  }
  CHECK_FALSE(failed);
}

TEST_CASE("large results and notifications are evaluated on another thread") {
  World w(kReads);
  const std::string token = R"(,"content":[{"type":"text","text":"a token"}])";
  REQUIRE(w.observe(1, "read", large(token)) == BH_PENDING);
  REQUIRE(w.observe(2, "read", large()) == BH_PENDING);
  REQUIRE(w.decide(3, "", large(token), BH_EVENT_NOTIFICATION) == BH_PENDING);
  w.answered(3);
  CHECK(World::later[0].verdict == BH_VERDICT_BLOCK);
  CHECK(World::later[0].rule.ends_with("result"));
  CHECK(World::later[1].verdict == BH_VERDICT_ALLOW);
  CHECK(World::later[2].rule.ends_with("note"));
}

TEST_CASE("large calls are counted like small calls") {
  World w(rules(R"j({"few": {"on": "mcp.request", "decision": "block",
    "if": "mcp.request.arguments.kind == 'counted'", "over": {"calls": 2, "by": ["server"]}}})j"));
  const std::string_view member = ",\"kind\":\"counted\"";
  REQUIRE(w.decide(1, "write", large(member)) == BH_PENDING);
  REQUIRE(w.decide(2, "write", large(member)) == BH_PENDING);
  REQUIRE(w.decide(3, "write", large(member)) == BH_PENDING);
  w.answered(3);
  CHECK(World::later[0].verdict == BH_VERDICT_ALLOW);
  CHECK(World::later[1].verdict == BH_VERDICT_ALLOW);
  CHECK(World::later[2].verdict == BH_VERDICT_BLOCK);
  REQUIRE(w.decide(4, "write", R"({"kind":"counted"})") == BH_OK);
  CHECK(w.out.verdict == BH_VERDICT_BLOCK);
}

TEST_CASE("hosts in a large message are counted") {
  World w(rules(R"j({"far": {"on": "mcp.request", "decision": "block", "if": "true",
    "over": {"destinations": 1, "by": ["server"]}}})j"));
  REQUIRE(w.decide(1, "get", large(R"(,"url":"https://a.example/")")) == BH_PENDING);
  REQUIRE(w.decide(2, "get", large(R"(,"url":"https://a.example/x")")) == BH_PENDING);
  REQUIRE(w.decide(3, "get", large(R"(,"url":"https://b.example/")")) == BH_PENDING);
  w.answered(3);
  CHECK(World::later[0].verdict == BH_VERDICT_ALLOW);
  CHECK(World::later[1].verdict == BH_VERDICT_ALLOW);
  CHECK(World::later[2].verdict == BH_VERDICT_BLOCK);
}

TEST_CASE("hosts outside a large message's arguments are counted") {
  World w(rules(R"j({"far": {"on": "mcp.request", "decision": "block", "if": "true",
    "over": {"destinations": 1, "by": ["server"]}}})j"));
  REQUIRE(w.decide(1, "get", large(R"(,"url":"https://a.example/")")) == BH_PENDING);
  REQUIRE(w.decide(2, "get", large(), BH_EVENT_CALL, R"({"x":"https://b.example/"})") ==
          BH_PENDING);
  REQUIRE(w.decide(3, "get", large(), BH_EVENT_CALL, R"({"x":1,"x":2})") == BH_PENDING);
  w.answered(3);
  CHECK(World::later[0].verdict == BH_VERDICT_ALLOW);
  CHECK(World::later[1].rule.ends_with("far"));
  CHECK(World::later[2].rule == "security.mcp.evaluation_error");
}

TEST_CASE("an invalid large message is rejected") {
  World w(kReads);
  REQUIRE(w.decide(1, "write", large(",\"kind\":1,\"kind\":2")) == BH_PENDING);
  REQUIRE(w.decide(2, "free", large(",\"kind\":1,\"kind\":2")) == BH_PENDING);
  REQUIRE(w.observe(3, "read", "[\"" + std::string(200'000, 'x') + "\"]") == BH_PENDING);
  w.answered(3);
  CHECK(World::later[0].verdict == BH_VERDICT_BLOCK);
  CHECK(World::later[0].rule == "security.mcp.evaluation_error");
  CHECK(World::later[0].reason.find("a duplicate member") != std::string::npos);
  CHECK(World::later[1].verdict == BH_VERDICT_ALLOW);  // the deciding rule does not read the body
  CHECK(World::later[2].reason.find("not an object") != std::string::npos);
}

TEST_CASE("messages with too many values are rejected") {
  std::string many = "{\"v\":[0";
  for (std::size_t i = 0; i <= bulkhead::rules::JsonText::kMaxValues; ++i) many += ",0";
  many += "]}";
  World w(kReads);
  REQUIRE(w.decide(1, "write", many) == BH_PENDING);
  CHECK(w.answered().verdict == BH_VERDICT_BLOCK);
  CHECK(w.answered().reason.find("more than 8,388,608 values") != std::string::npos);
  // Commas inside a string do not count as values.
  REQUIRE(w.decide(2, "write", "{\"v\":\"" + std::string(many.size(), ',') + "\"}") == BH_PENDING);
  CHECK(w.answered(2).verdict == BH_VERDICT_BLOCK);
  CHECK(w.answered(2).reason.find("no such key") != std::string::npos);
}

TEST_CASE("a large result of a task counts towards the byte budget of its tool") {
  World w(rules(R"j({
    "bytes": {"on": "mcp.request", "if": "true", "decision": "block",
              "over": {"bytes": 100000, "by": ["tool"]}},
    "result": {"on": "mcp.response", "if": "mcp.response.text.contains('token')",
               "decision": "block"}})j"));
  REQUIRE(w.observe(1, "job", large(), BH_REQUEST_UNDECIDED) == BH_PENDING);
  CHECK(w.answered().verdict == BH_VERDICT_ALLOW);
  REQUIRE(w.decide(2, "job", "{}") == BH_OK);
  CHECK(w.out.verdict == BH_VERDICT_BLOCK);
  REQUIRE(w.decide(3, "other", "{}") == BH_OK);
  CHECK(w.out.verdict == BH_VERDICT_ALLOW);
}

TEST_CASE("large_messages = refuse rejects large messages that rules read") {
  World w(rules(R"j({"r": {"on": "mcp.request", "decision": "block",
    "if": "mcp.request.arguments.kind == 'secret'"}})j",
                R"(,"large_messages":"refuse","values_at_once":2048)"));
  REQUIRE(w.decide(1, "write", large("", 5'000)) == BH_OK);
  CHECK(w.out.verdict == BH_VERDICT_BLOCK);
  CHECK(bh::view(w.out.rule) == "security.large_messages");
  REQUIRE(w.decide(2, "write", large(",\"kind\":\"x\"", 2'000)) == BH_OK);
  CHECK(w.out.verdict == BH_VERDICT_ALLOW);
  CHECK(World::later.empty());
}

TEST_CASE("the total size of pending messages is limited") {
  World w(kReads);
  w.host.blocking_inline = false;
  const std::string half = large("", std::size_t{130} << 20);
  REQUIRE(w.decide(1, "write", half) == BH_PENDING);
  REQUIRE(w.decide(2, "write", half) == BH_E_LIMIT);
  CHECK(std::string(bh::text(w.error)).find("256 MiB") != std::string::npos);
  w.answered();
  REQUIRE(w.decide(3, "write", half) == BH_PENDING);
  CHECK(w.answered(2).exchange == 3);
}

TEST_CASE("the verdict is based on the rules in effect when the evaluation finishes") {
  World w(kReads);
  const std::string other = rules(
      R"j({"all": {"on": "mcp.request", "if": "has(mcp.request.arguments.text)", "decision": "block"}})j");
  REQUIRE(w.decide(1, "write", large(",\"kind\":\"plain\"")) == BH_PENDING);
  REQUIRE(w.decide(2, "free", large()) == BH_PENDING);
  REQUIRE(w.policy->reconfigure(w.plugin->self, bh::str(other), &w.error) == BH_OK);
  w.answered(2);
  for (const World::Verdict &each : World::later) {
    CHECK(each.verdict == BH_VERDICT_BLOCK);
    CHECK(each.rule.ends_with("all"));
  }
  REQUIRE(w.decide(3, "write", large(",\"kind\":\"secret\"")) == BH_PENDING);
  REQUIRE(w.policy->reconfigure(w.plugin->self, bh::str(rules("{}")), &w.error) == BH_OK);
  CHECK(w.answered(3).verdict == BH_VERDICT_ALLOW);
}
