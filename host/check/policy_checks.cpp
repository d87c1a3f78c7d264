// The rules of policy plugins.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "bulkhead/abi/ext/draft/state.h"
#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/json.hpp"
#include "bulkhead/cpp/text.hpp"
#include "check/scenarios.hpp"
#include "check/started.hpp"

namespace bulkhead::check {
namespace {

// How long a pending decision may take. Less than the time limit of a step.
constexpr int decision_ms = 4'000;
constexpr int late_ms = 50;
constexpr std::uint32_t known_needs = BH_POLICY_READS_ARGUMENTS | BH_POLICY_READS_RESULTS |
                                      BH_POLICY_FILTERS_LISTS | BH_POLICY_DECIDES |
                                      BH_POLICY_READS_DEFINITION | BH_POLICY_JUDGES_INPUT |
                                      BH_POLICY_JUDGES_NOTIFICATIONS;

bh_policy_request request(std::uint64_t exchange) {
  bh_policy_request r{};
  r.size = sizeof r;
  r.exchange = exchange;
  r.session = 1;
  r.transport = bh::str("http");
  r.peer = bh::str("127.0.0.1:4711");
  r.principal = bh::str("tester");
  r.process_name = bh::str("check");
  r.method = bh::str("tools/call");
  r.server = bh::str("files");
  r.name = bh::str("read_file");
  r.arguments = bh::str(R"({"path":"/etc/passwd"})");
  r.definition_hash = bh::str("0123456789abcdef0123456789abcdef");
  r.definition = bh::str(R"({"name":"read_file","inputSchema":{"type":"object"}})");
  r.session_calls = 1;
  r.pin = BH_PIN_SAME;
  return r;
}

// A started policy plugin.
class Policy : public Started<bh_policy> {
 public:
  Policy(Trial *trial, const Subject &subject, Rule rule)
      : Started(trial, subject, rule, BH_EXT_POLICY) {}
  bool has(std::uint32_t need) { return (table_->needs(self()) & need) != 0; }

  // Returns the verdict, or `none` if the request was rejected with an error.
  static constexpr std::uint32_t none = ~0u;
  std::uint32_t decide(const bh_policy_request &r, const std::string &what) {
    trial_.step(rule_, what);
    bh_verdict verdict{};
    verdict.size = sizeof verdict;
    bh_error error = bh::make_error();
    const bh_status status = table_->decide(self(), &r, &verdict, &error);
    return verdict_of("decide", status, error, verdict, r.exchange);
  }
  std::uint32_t observe(const bh_policy_request &r, std::string_view result,
                        const std::string &what) {
    trial_.step(rule_, what);
    bh_verdict verdict{};
    verdict.size = sizeof verdict;
    bh_error error = bh::make_error();
    const bh_status status = table_->observe(self(), &r, bh::str(result), &verdict, &error);
    return verdict_of("observe", status, error, verdict, r.exchange);
  }

  std::size_t decisions(std::uint64_t exchange) const {
    const auto all = host_.decided();
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const auto &one) { return one.exchange == exchange; }));
  }
  // Returns false if the decision is not reported in time.
  bool wait(std::uint64_t exchange) {
    return host_.base().run_until([&] { return decisions(exchange) > 0; }, decision_ms);
  }

 private:
  std::uint32_t verdict_of(const char *function, bh_status status, const bh_error &error,
                           const bh_verdict &verdict, std::uint64_t exchange) {
    if (status < 0) {
      check_error(&trial_, rule_, function, status, error);
      return none;
    }
    if (status == BH_PENDING) {
      if (!wait(exchange)) return none;  // see check_pending()
      for (const auto &one : host_.decided()) {
        if (one.exchange == exchange) return one.verdict;
      }
    }
    if (!bh::is_utf8(bh::view(verdict.rule)) || !bh::is_utf8(bh::view(verdict.reason))) {
      trial_.violated(rule_, std::string(function) + " sets a text that is not UTF-8");
    }
    if (verdict.verdict == BH_VERDICT_REWRITE && !bh::json::valid(bh::view(verdict.arguments))) {
      trial_.violated(rule_, std::string(function) + " rewrites to invalid JSON");
    }
    return verdict.verdict;
  }
};

bool is_verdict(std::uint32_t verdict) {
  return verdict >= BH_VERDICT_ALLOW && verdict <= BH_VERDICT_REWRITE;
}

void check_needs(Trial *trial, const Subject &subject) {
  Policy policy(trial, subject, Rule::policy_needs);
  if (!policy.ready()) return;
  trial->checked(Rule::policy_needs);
  const std::uint32_t needs = policy.table().needs(policy.self());
  if ((needs & ~known_needs) != 0) {
    trial->violated(Rule::policy_needs, "needs returns bits that are not defined");
  }
  policy.host().base().run_for(late_ms);
  if (policy.table().needs(policy.self()) != needs) {
    trial->violated(Rule::policy_needs, "needs returns other bits in a second call");
  }
}

void check_verdicts(Trial *trial, const Subject &subject) {
  Policy policy(trial, subject, Rule::verdicts);
  if (!policy.ready() || !policy.has(BH_POLICY_DECIDES)) return;
  trial->checked(Rule::verdicts);
  std::uint64_t exchange = 0;
  for (const char *method :
       {"tools/call", "resources/read", "prompts/get", "completion/complete"}) {
    auto r = request(++exchange);
    r.method = bh::str(method);
    const std::uint32_t verdict = policy.decide(r, "decide()");
    if (verdict != Policy::none && !is_verdict(verdict)) {
      trial->violated(Rule::verdicts, "decide returns the verdict " + std::to_string(verdict));
    }
  }
}

void check_hostile_requests(Trial *trial, const Subject &subject) {
  Policy policy(trial, subject, Rule::hostile_requests);
  if (!policy.ready()) return;
  trial->checked(Rule::hostile_requests);
  const std::string large = "{\"x\":\"" + std::string(4 << 20, 'x') + "\"}";
  const std::string deep = std::string(120, '[') + std::string(120, ']');
  const std::string name(4'096, '/');
  struct Named {
    std::string name;
    bh_policy_request request;
  };
  std::vector<Named> all;
  bh_policy_request empty{};
  empty.size = sizeof empty;
  all.push_back({"an empty request", empty});
  const std::string odd = "{\"\\u0000\":\"\\ud800\"}", null = "null", array = "[]";
  for (const std::string *arguments : std::array{&large, &deep, &null, &array, &odd}) {
    auto r = request(0);
    r.arguments = bh::str(*arguments);
    r.extra = r.meta = r.arguments;
    all.push_back({"the arguments " + arguments->substr(0, 20), r});
  }
  auto r = request(0);
  r.name = bh::str(name);
  r.method = bh::str("no/such/method");
  r.pin = 99;
  r.flags = ~0u;
  all.push_back({"unknown values", r});
  std::uint64_t exchange = 0;
  for (auto &[what, one] : all) {
    one.exchange = ++exchange;
    if (policy.has(BH_POLICY_DECIDES)) policy.decide(one, "decide() with " + what);
    if (policy.has(BH_POLICY_READS_RESULTS)) {
      policy.observe(one, bh::view(one.arguments), "observe() with " + what);
    }
    if (policy.has(BH_POLICY_FILTERS_LISTS)) {
      trial->step(Rule::hostile_requests, "filter() with " + what);
      one.exchange = ++exchange;
      policy.table().filter(policy.self(), &one, nullptr);
    }
  }
  policy.host().base().run_for(late_ms);
}

void check_results(Trial *trial, const Subject &subject) {
  Policy policy(trial, subject, Rule::result_verdicts);
  if (!policy.ready() || !policy.has(BH_POLICY_READS_RESULTS)) return;
  trial->checked(Rule::result_verdicts);
  std::uint64_t exchange = 0;
  for (const char *result : {R"({"content":[{"type":"text","text":"hello"}]})",
                             R"({"content":[],"isError":true})", "{}"}) {
    const std::uint32_t verdict = policy.observe(request(++exchange), result, "observe()");
    if (verdict != Policy::none && (!is_verdict(verdict) || verdict == BH_VERDICT_ASK)) {
      trial->violated(Rule::result_verdicts,
                      "observe returns the verdict " + std::to_string(verdict));
    }
  }
}

// Calls decide(), observe() and filter(), as far as needs() requests them, each three times. The
// exchanges are the indexes in *is_pending, whose first element is unused.
void ask_all(Trial *trial, Rule rule, Policy *policy, std::vector<bool> *is_pending) {
  if (is_pending->empty()) is_pending->push_back(false);
  const auto add = [&](bh_status status) { is_pending->push_back(status == BH_PENDING); };
  trial->step(rule, "decide(), observe() and filter()");
  for (int i = 0; i < 3; ++i) {
    bh_verdict verdict{};
    verdict.size = sizeof verdict;
    bh_error error = bh::make_error();
    const bh_policy &table = policy->table();
    if (policy->has(BH_POLICY_DECIDES)) {
      const auto r = request(is_pending->size());
      add(table.decide(policy->self(), &r, &verdict, &error));
    }
    if (policy->has(BH_POLICY_READS_RESULTS)) {
      const auto r = request(is_pending->size());
      add(table.observe(policy->self(), &r, bh::str("{\"content\":[]}"), &verdict, &error));
    }
    if (policy->has(BH_POLICY_FILTERS_LISTS)) {
      const auto r = request(is_pending->size());
      add(table.filter(policy->self(), &r, nullptr));
    }
  }
}

void check_pending(Trial *trial, const Subject &subject) {
  Policy policy(trial, subject, Rule::pending_decisions);
  if (!policy.ready()) return;
  trial->checked(Rule::pending_decisions);
  std::vector<bool> is_pending;
  ask_all(trial, Rule::pending_decisions, &policy, &is_pending);
  for (std::size_t i = 1; i < is_pending.size(); ++i) {
    trial->step(Rule::pending_decisions, "a pending decision");
    if (is_pending[i] && !policy.wait(i)) {
      trial->violated(Rule::pending_decisions, "a pending decision is never reported");
      break;
    }
  }
  policy.host().base().run_for(late_ms);
  for (std::size_t i = 1; i < is_pending.size(); ++i) {
    const std::size_t count = policy.decisions(i);
    if (count > 1) {
      trial->violated(Rule::pending_decisions, "a decision is reported more than once");
    } else if (count == 1 && !is_pending[i]) {
      trial->violated(Rule::pending_decisions,
                      "a decision is reported that was returned immediately");
    }
  }
}

// Pending decisions while the policy is drained, and while it is stopped.
void check_stop_during_decisions(Trial *trial, const Subject &subject) {
  constexpr Rule rule = Rule::stop_during_decisions;
  Policy policy(trial, subject, rule);
  if (!policy.ready()) return;
  trial->checked(rule);
  const Held before = held(*trial);
  std::vector<bool> is_pending;
  ask_all(trial, rule, &policy, &is_pending);
  policy.tested().drain();
  const std::size_t drained = is_pending.size();
  for (std::size_t i = 1; i < drained; ++i) {
    trial->step(rule, "a decision that was pending when drain() was called");
    if (is_pending[i] && !policy.wait(i)) {
      trial->violated(rule, "a pending decision is never reported after drain()");
      break;
    }
  }
  ask_all(trial, rule, &policy, &is_pending);
  policy.tested().stop();
  check_stopped(trial, rule, &policy.host(), before);
  policy.host().base().forget();
  policy.tested().destroy();
  check_destroyed(trial, rule, before);
}

void check_reconfigure(Trial *trial, const Subject &subject) {
  Policy policy(trial, subject, Rule::reconfigure);
  if (!policy.ready()) return;
  const bh_policy &table = policy.table();
  if (!BH_HAS(bh_policy, &table, reconfigure) || table.reconfigure == nullptr) return;
  trial->checked(Rule::reconfigure);
  const auto reconfigure = [&](const std::string &config, const char *what) {
    trial->step(Rule::reconfigure, what);
    bh_error error = bh::make_error();
    const bh_status status = table.reconfigure(policy.self(), bh::str(config), &error);
    check_error(trial, Rule::reconfigure, "reconfigure", status, error);
    return status;
  };
  if (reconfigure(subject.config, "reconfigure() with the configuration in use") != BH_OK) {
    trial->violated(Rule::reconfigure, "the configuration in use is rejected");
  }
  const std::uint32_t before = policy.table().needs(policy.self());
  for (const std::string config : {"", "[]", "{", "null"}) {
    if (reconfigure(config, "reconfigure() with a wrong configuration") >= 0) {
      trial->violated(Rule::reconfigure, "the configuration \"" + config + "\" is accepted");
    }
  }
  if (policy.table().needs(policy.self()) != before) {
    trial->violated(Rule::reconfigure, "a rejected configuration changes needs()");
  }
}

void check_unknown_event(Trial *trial, const Subject &subject) {
  Policy policy(trial, subject, Rule::unknown_event);
  if (!policy.ready() || !policy.has(BH_POLICY_JUDGES_INPUT | BH_POLICY_JUDGES_NOTIFICATIONS)) {
    return;
  }
  trial->checked(Rule::unknown_event);
  auto r = request(1);
  r.event = 99;
  if (policy.decide(r, "decide() with an unknown event") == BH_VERDICT_ALLOW) {
    trial->violated(Rule::unknown_event, "a message with the event 99 is allowed");
  }
}

// An exported state, with copies of its texts.
struct State {
  bh_state_blob blob{};
  std::string schema, bytes;

  const bh_state_blob *get() {
    blob.size = sizeof blob;
    blob.schema = bh::str(schema);
    blob.bytes = bh::str(bytes);
    return &blob;
  }
};

bool export_state(Trial *trial, Policy *policy, State *out) {
  trial->step(Rule::moved_state, "export_state()");
  const auto *table = policy->tested().ext<bh_state>(BH_EXT_STATE);
  bh_error error = bh::make_error();
  out->blob = {};
  out->blob.size = sizeof out->blob;
  const bh_status status = table->export_state(policy->self(), &out->blob, &error);
  check_error(trial, Rule::moved_state, "export_state", status, error);
  if (status != BH_OK) {
    trial->violated(Rule::moved_state, "export_state fails: " + std::string(bh::text(error)));
    return false;
  }
  const bh_state_blob &blob = out->blob;
  if (blob.schema.n == 0 || blob.schema.n > BH_STATE_SCHEMA_BYTES ||
      blob.bytes.n > BH_STATE_BYTES || blob.fd_count != 0) {
    trial->violated(Rule::moved_state,
                    "export_state returns no schema, descriptors, or a text above its limit");
    return false;
  }
  out->schema = bh::view(blob.schema);
  out->bytes = bh::view(blob.bytes);
  return true;
}

bh_status import_state(Trial *trial, Policy *policy, State state, const std::string &what) {
  trial->step(Rule::moved_state, "import_state() with " + what);
  const auto *table = policy->tested().ext<bh_state>(BH_EXT_STATE);
  bh_error error = bh::make_error();
  const bh_status status = table->import_state(policy->self(), state.get(), &error);
  check_error(trial, Rule::moved_state, "import_state", status, error);
  return status;
}

void check_state(Trial *trial, const Subject &subject) {
  Policy first(trial, subject, Rule::moved_state);
  if (!first.ready()) return;
  trial->checked(Rule::moved_state);
  for (std::uint64_t exchange = 1; exchange <= 3 && first.has(BH_POLICY_DECIDES); ++exchange) {
    first.decide(request(exchange), "decide() before export_state()");
  }
  State state, again;
  if (!export_state(trial, &first, &state)) return;
  Policy second(trial, subject, Rule::moved_state);
  if (!second.ready()) return;
  if (import_state(trial, &second, state, "the state of another instance") != BH_OK) {
    trial->violated(Rule::moved_state, "import_state rejects the state of another instance");
    return;
  }
  if (!export_state(trial, &second, &again)) return;
  const auto same = [](const State &a, const State &b) {
    return a.schema == b.schema && a.blob.version == b.blob.version;
  };
  if (!same(state, again)) {
    trial->violated(Rule::moved_state, "the second instance exports another schema or version");
  }
  const auto must_reject = [&](const State &wrong, const std::string &what) {
    if (import_state(trial, &second, wrong, what) >= 0) {
      trial->violated(Rule::moved_state, "import_state accepts " + what);
    }
  };
  State wrong = state;
  wrong.schema = "no.such.schema";
  must_reject(wrong, "an unknown schema");
  wrong = state;
  wrong.blob.version = ~0u;
  must_reject(wrong, "an unknown version");
  wrong = state;
  wrong.blob.fd_count = 1;
  must_reject(wrong, "descriptors");
  // The check does not know which of these states are malformed. They must not cause a crash.
  for (std::size_t n = 0; n < state.bytes.size() && n < 64; ++n) {
    wrong = state;
    wrong.bytes[n] = static_cast<char>(~wrong.bytes[n]);
    import_state(trial, &second, wrong, "a changed byte");
    wrong.bytes = state.bytes.substr(0, n);
    import_state(trial, &second, wrong, "a truncated state");
  }
  wrong = state;
  wrong.bytes.assign(BH_STATE_BYTES, '\xff');
  import_state(trial, &second, wrong, "a large state");
}

constexpr std::array scenarios{
    Scenario{BH_EXT_POLICY, check_needs},
    Scenario{BH_EXT_POLICY, check_verdicts},
    Scenario{BH_EXT_POLICY, check_results},
    Scenario{BH_EXT_POLICY, check_hostile_requests},
    Scenario{BH_EXT_POLICY, check_pending},
    Scenario{BH_EXT_POLICY, check_reconfigure},
    Scenario{BH_EXT_POLICY, check_unknown_event},
    Scenario{BH_EXT_POLICY, check_stop_during_decisions, {Rule::pending_decisions}},
    Scenario{BH_EXT_STATE, check_state},
};

}  // namespace

std::span<const Scenario> policy_scenarios() noexcept {
  return scenarios;
}

}  // namespace bulkhead::check
