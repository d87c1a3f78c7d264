// policy-rules: a policy plugin that evaluates calls, results and other events against the rules in
// the profile.
#include <bulkhead/abi/ext/draft/explain.h>

#include <bulkhead/cpp/clock.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>

#include <memory>
#include <string>

#include "counter_state.hpp"
#include "explain.hpp"
#include "judge.hpp"
#include "large_questions.hpp"
#include "rule_set.hpp"

namespace {

using bulkhead::rules::Call;
using bulkhead::rules::CounterState;
using bulkhead::rules::Event;
using bulkhead::rules::Judge;
using bulkhead::rules::LargeQuestions;
using bulkhead::rules::RuleSet;
using bulkhead::rules::Verdict;

class PolicyRules {
 public:
  static constexpr bh::Info info{.id = "policy-rules",
                                 .name = "Rules",
                                 .version = "0.1.0",
                                 .vendor = "Bulkhead",
                                 .config_schema = R"({"type":"object","additionalProperties":false,
                           "properties":{"profile_rules":{"type":"array"}}})",
                                 .provides = {BH_EXT_POLICY, BH_EXT_EXPLAIN, BH_EXT_STATE}};

  explicit PolicyRules(const bh_host *host)
      : host_(host),
        judge_(clock()),
        large_(
            host_, judge_, clock(), [this] { return rules_; },
            [this](std::uint64_t exchange, const Verdict &verdict) { later(exchange, verdict); }) {
    host_policy_ = host_.ext<bh_host_policy>(BH_EXT_HOST_POLICY);
  }

  bh_status configure(bh_str json, bh_error *error) {
    auto rules = RuleSet::load(bh::view(json));
    if (rules.has_value()) {
      rules_ = std::make_shared<const RuleSet>(std::move(*rules));
      for (const std::string &warning : rules_->warnings) host_.log(BH_LOG_WARN, warning);
      return BH_OK;
    }
    const std::vector<std::string> &faults = rules.error();
    std::string text = faults.front();
    if (faults.size() > 1) {
      for (const std::string &fault : faults) host_.log(BH_LOG_ERROR, fault);
      const std::size_t more = faults.size() - 1;
      text += " (and " + std::to_string(more) +
              (more == 1 ? " more error; see the log)" : " more errors; see the log)");
    }
    return bh::fail(error, BH_E_INVALID, text);
  }
  bh_status reconfigure(bh_str json, bh_error *error) { return configure(json, error); }

  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept { large_.stop(); }
  const void *get_ext(const char *id) noexcept {
    if (bh::is(id, BH_EXT_EXPLAIN)) return &explain_table;
    if (bh::is(id, BH_EXT_STATE)) return bh::state_table<PolicyRules>();
    return bh::is(id, BH_EXT_POLICY) ? bh::policy_table<PolicyRules>() : nullptr;
  }

  std::uint32_t needs() const noexcept { return rules_->needs; }
  bh_status decide(const bh_policy_request &request, bh_verdict *out, bh_error *error) {
    if (BH_HAS(bh_policy_request, &request, event) && request.event > BH_EVENT_NOTIFICATION)
      return bh::fail(error, BH_E_UNSUPPORTED, "rules do not apply to that kind of message");
    const Call call = bulkhead::rules::call_of(request);
    if (judge_.is_large(*rules_, call.event, call, {}))
      return ask_large(call.event, call, {}, out, error);
    const bool is_call = call.event == Event::request;
    return give(is_call ? judge_.decide(*rules_, call) : judge_.judge(*rules_, call), out);
  }
  bh_status observe(const bh_policy_request &request, bh_str result, bh_verdict *out,
                    bh_error *error) {
    const Call call = bulkhead::rules::call_of(request);
    if (judge_.is_large(*rules_, Event::response, call, bh::view(result)))
      return ask_large(Event::response, call, bh::view(result), out, error);
    return give(judge_.observe(*rules_, call, bh::view(result)), out);
  }
  bh_status filter(const bh_policy_request &request, bh_error *) {
    return judge_.shows(*rules_, bulkhead::rules::call_of(request)) ? BH_OK : BH_E_DENIED;
  }

  bh_status export_state(bh_state_blob *out, bh_error *error) {
    auto state = judge_.export_state(BH_STATE_BYTES);
    if (!state) return bh::fail(error, BH_E_LIMIT, state.error());
    state_ = std::move(*state);
    out->version = CounterState::kVersion;
    out->schema = bh::str(CounterState::kSchema);
    out->bytes = bh::str(state_);
    return BH_OK;
  }
  bh_status import_state(const bh_state_blob &blob, bh_error *error) {
    const bool known = bh::view(blob.schema) == CounterState::kSchema &&
                       blob.version == CounterState::kVersion && blob.fd_count == 0;
    if (!known) {
      return bh::fail(error, BH_E_INVALID,
                      "the state has another format than that of this version of policy-rules");
    }
    if (!judge_.import_state(*rules_, bh::view(blob.bytes))) {
      return bh::fail(error, BH_E_INVALID, "the state is malformed");
    }
    return BH_OK;
  }

 private:
  static bh_status explain(void *self, bh_str call, bh_buf *out, bh_error *error) {
    return bh::guarded(error, [&] {
      auto &plugin = bh::self<PolicyRules>(self);
      auto text = bulkhead::rules::explain(*plugin.rules_, plugin.judge_, bh::view(call));
      if (!text.has_value()) return bh::fail(error, BH_E_INVALID, text.error());
      *out = bh::buf(std::move(*text));
      return bh_status(BH_OK);
    });
  }
  static constexpr bh_explain explain_table{sizeof(bh_explain), 0, explain};

  static Judge::Clock clock() { return {bh::monotonic_ms, bh::unix_ms}; }

  bh_status ask_large(Event event, const Call &call, std::string_view result, bh_verdict *out,
                      bh_error *error) {
    if (!rules_->refuses_large) {
      if (host_policy_ == nullptr || !host_.has_reactor())
        return bh::fail(error, BH_E_UNSUPPORTED, "the host has no thread pool for large messages");
      return large_.ask(event, call, result, error);
    }
    return give(judge_.refuse_large(*rules_), out);
  }
  void later(std::uint64_t exchange, const Verdict &verdict) {
    bh_verdict out{};
    out.size = sizeof out;
    give(verdict, &out);
    host_policy_->decided(host_.ctx(), exchange, &out);
  }

  static bh_status give(const Verdict &verdict, bh_verdict *out) {
    out->verdict = verdict.kind;
    out->rule = bh::str(verdict.rule);
    out->reason = bh::str(verdict.reason);
    out->arguments = bh::str(verdict.text);
    if (BH_HAS(bh_verdict, out, flags)) out->flags = verdict.warned ? BH_VERDICT_WARNED : 0;
    return BH_OK;
  }

  bh::Host host_;
  const bh_host_policy *host_policy_ = nullptr;
  std::shared_ptr<const RuleSet> rules_;
  Judge judge_;
  LargeQuestions large_;
  std::string state_;  // the last export
};

}  // namespace

BH_PLUGIN(PolicyRules)
