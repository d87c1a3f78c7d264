#include "judge.hpp"

#include <algorithm>

namespace bulkhead::rules {
namespace {

using cel::Value;

const std::string kUnreadable = "the destinations of the request cannot be counted: ";

}  // namespace

void Judge::begin(Event event, const Call &call, std::string_view result) {
  question_.begin(event, call, result);
  charges_.clear();
}

// ---- one rule --------------------------------------------------------------------------------

Match Judge::failed(std::string text) {
  fault_ = std::move(text);
  return Match::error;
}

Match Judge::list_matches(const Rule &rule) const {
  if (question_.call().method != "tools/call" || question_.call().server != rule.server)
    return Match::no;
  const bool listed =
      std::binary_search(rule.tools.begin(), rule.tools.end(), question_.call().name);
  return listed == rule.listed ? Match::yes : Match::no;
}

Match Judge::match(const Rule &rule) {
  Match found = Match::no;
  if (known_ == nullptr) {
    found = match_without_budget(rule);
  } else if (const auto at = known_->rules.find(&rule); at != known_->rules.end()) {
    fault_ = at->second.fault;
    found = at->second.match;
  } else {
    return failed("it was not evaluated in advance");
  }
  const bool counts = found == Match::yes && rule.over && !question_.is_partial();
  return counts ? within(rule, *rule.over) : found;
}

Match Judge::match_without_budget(const Rule &rule) {
  if (question_.event() != Event::request && (rule.reads & body_bits(question_.event())) != 0) {
    if (const char *fault = question_.parse_body()) {
      const bool response = question_.event() == Event::response;
      return failed(std::string(response ? "the result is invalid: " : "the message is invalid: ") +
                    fault);
    }
  }
  if (rule.by_list) return list_matches(rule);
  for (const auto &[slot, text] : rule.begins) {
    if (!question_.values()[slot].text().starts_with(text)) return Match::no;
  }
  if (rule.condition) {
    const bool reads_arguments =
        question_.event() == Event::request && (rule.reads & kArgumentBits) != 0;
    if (reads_arguments && !question_.is_partial()) {
      if (const char *fault = question_.parse_arguments())
        return failed(std::string("the arguments are invalid: ") + fault);
    }
    question_.fill(rule.reads);
    // Conditions may read the call's data several times, so the budget increases with the size of
    // the data.
    const std::uint64_t budget =
        cel::Program::kDefaultBudget + question_.call().asked_bytes() + question_.body().size();
    const Value value = rule.condition->evaluate(question_.values(), scratch_, budget);
    if (value.is_error()) return failed(rule.condition->explain(value).to_string());
    if (!value.is(cel::Kind::kBool)) return failed("the condition did not return a bool");
    if (!value.as_bool()) return Match::no;
  }
  return Match::yes;
}

// Returns the key of the count that the call is added to. `budget` is the rule's budget.
std::string Judge::key_of(const Rule &rule, const Budget &budget) const {
  const Call &call = question_.call();
  std::string key = rule.id;
  // Each part is prefixed with its length, so different parts never result in the same key.
  const auto part = [&](bool wanted, std::string_view text) {
    if (wanted) key.append("\n").append(std::to_string(text.size())).append(":").append(text);
  };
  part(budget.by_session, std::to_string(call.session));
  part(budget.by_principal, call.principal);
  part(budget.by_process, call.process_name);
  part(budget.by_server, call.server);
  part(budget.by_tool, question_.values()[kTool].text());
  return key;
}

// Evaluates the rule's budget. Returns yes if the call would exceed the budget, and error if its
// destinations cannot be determined. Otherwise, returns no and, if the call is not yet counted,
// prepares a charge, which is applied unless the call is blocked.
Match Judge::within(const Rule &rule, const Budget &budget) {
  std::string key = key_of(rule, budget);
  if (question_.call().again && is_counted(key)) return Match::no;
  const Counters::Addition addition{question_.call().asked_bytes(), &question_.hosts(),
                                    question_.call().principal};
  if (budget.what == Budget::What::destinations && known_ == nullptr) {
    if (const char *fault = question_.find_hosts()) return failed(kUnreadable + fault);
  }
  if (counters_.over(budget, key, addition, clock_.steady_ms())) return Match::yes;
  charges_.push_back({&budget, std::move(key)});
  return Match::no;
}

// Returns true if the call was added to this count before it was approved. A budget that was loaded
// while the approval was pending has not yet counted the call.
bool Judge::is_counted(const std::string &key) const {
  // If these rules did not require the approval, they had already allowed and counted the call.
  if (!question_.call().approved) return true;
  const auto at = asked_.find(question_.call().exchange);
  return at != asked_.end() &&
         std::find(at->second.begin(), at->second.end(), key) != at->second.end();
}

void Judge::note(const Rule &rule, Match match) {
  if (looks_ == nullptr) return;
  Look look;
  look.rule = &rule;
  const bool within = !charges_.empty() && rule.over && charges_.back().budget == &*rule.over;
  look.found = match == Match::yes     ? Look::Found::matches
               : match == Match::error ? Look::Found::error
               : within                ? Look::Found::within
                                       : Look::Found::differs;
  if (match == Match::error) look.text = fault_;
  looks_->push_back(std::move(look));
}

// ---- verdicts --------------------------------------------------------------------------------

Verdict Judge::evaluation_error(const Rule &rule) {
  reason_ = "rule " + rule.id + (rule.place.empty() ? "" : " (" + rule.place + ")") +
            " cannot be evaluated: " + fault_;
  Verdict verdict;
  verdict.kind = BH_VERDICT_BLOCK;
  verdict.rule = kEvaluationError;
  verdict.reason = reason_;
  return verdict;
}

Verdict Judge::rewritten(const Rule &rule) {
  Verdict verdict;
  verdict.rule = rule.id;
  verdict.reason = rule.reason;
  if (question_.changeable().empty() || !rule.rewrite) return verdict;  // nothing to rewrite
  Rewritten made;
  if (known_ == nullptr) {
    made = rule.rewrite->apply(question_.changeable());
  } else if (const auto at = known_->rules.find(&rule); at != known_->rules.end()) {
    made = at->second.rewritten.value_or(Rewritten{});
  }
  if (!made.text) {
    fault_ =
        "the rewritten text is not valid JSON, is nested too deeply, or would become too large";
    return evaluation_error(rule);
  }
  if (!made.changed) return verdict;
  text_ = std::move(*made.text);
  verdict.kind = BH_VERDICT_REWRITE;
  verdict.text = text_;
  return verdict;
}

Verdict Judge::act(const Rule &rule) {
  if (rule.action == Action::rewrite) return rewritten(rule);
  Verdict verdict;
  verdict.kind = rule.action == Action::allow ? BH_VERDICT_ALLOW
                 : rule.action == Action::ask ? BH_VERDICT_ASK
                                              : BH_VERDICT_BLOCK;
  verdict.rule = rule.id;
  verdict.reason = rule.reason;
  verdict.warned = rule.warned;
  return verdict;
}

// If the call requires approval, remembers the counts that already include it. Otherwise, forgets
// them.
void Judge::remember(bool asks) {
  if (!asks) {
    if (question_.call().again)
      asked_.erase(question_.call().exchange);  // asked_order_ drops its entry later
    return;
  }
  const auto [at, fresh] = asked_.try_emplace(question_.call().exchange);
  for (const Charge &each : charges_) at->second.push_back(each.key);
  if (!fresh) return;
  asked_order_.push_back(question_.call().exchange);
  if (asked_order_.size() <= kMaxAsked) return;
  asked_.erase(asked_order_.front());
  asked_order_.pop_front();
}

void Judge::charge() {
  const std::uint64_t now = clock_.steady_ms();
  const Call &call = question_.call();
  for (Charge &each : charges_) {
    counters_.add(*each.budget, each.key, {call.asked_bytes(), &question_.hosts(), call.principal},
                  now);
    if (each.budget->what == Budget::What::bytes)
      counters_.expect_result(call.exchange, *each.budget, std::move(each.key), call.principal);
  }
}

// Adds the size of a result to the byte budgets that apply to its target. decide() was not called
// for its request, for example because the request is about a task. The arguments of the call that
// created the task are not known. If a condition depends on them, a byte budget with this condition
// is charged, and a rule without a budget is skipped.
void Judge::charge_undecided(const RuleSet &set, const Call &call, std::uint64_t bytes) {
  begin(Event::request, call);
  question_.hide_request();
  const std::uint64_t now = clock_.steady_ms();
  const std::vector<Rule> &rules = set.of(Event::request);
  set.index_of(Event::request)
      .each(call.server, question_.values()[kTool].text(), [&](std::uint32_t number) {
        const Rule &rule = rules[number];
        const Match found = match_without_budget(rule);
        if (found == Match::no) return false;
        if (!rule.over) return found == Match::yes;  // this rule decides about such calls
        if (rule.over->what == Budget::What::bytes)
          counters_.add(*rule.over, key_of(rule, *rule.over), {bytes, nullptr, call.principal},
                        now);
        return false;
      });
}

Verdict Judge::first_match(const RuleSet &set) {
  Verdict verdict;
  const std::vector<Rule> &rules = set.of(question_.event());
  set.index_of(question_.event())
      .each(question_.call().server, question_.values()[kTool].text(), [&](std::uint32_t number) {
        const Rule &rule = rules[number];
        const Match found = match(rule);
        note(rule, found);
        if (found == Match::no) return false;
        verdict = found == Match::error ? evaluation_error(rule) : act(rule);
        return true;
      });
  return verdict;
}

Verdict Judge::decide(const RuleSet &set, const Call &call, std::vector<Look> *looks) {
  looks_ = looks;
  begin(Event::request, call);
  if (known_ != nullptr) question_.use_hosts(known_->hosts);
  const Verdict verdict = first_match(set);
  if (looks != nullptr) return verdict;
  remember(verdict.kind == BH_VERDICT_ASK);
  if (verdict.kind != BH_VERDICT_BLOCK) charge();
  return verdict;
}

Verdict Judge::observe(const RuleSet &set, const Call &call, std::string_view result,
                       std::vector<Look> *looks) {
  if (looks == nullptr) {
    if (call.undecided)
      charge_undecided(set, call, result.size());
    else
      counters_.add_result(call.exchange, result.size(), clock_.steady_ms());
  }
  looks_ = looks;
  begin(Event::response, call, result);
  return judge_body(set);
}

Verdict Judge::judge(const RuleSet &set, const Call &call, std::vector<Look> *looks) {
  looks_ = looks;
  begin(call.event, call);
  return judge_body(set);
}

Verdict Judge::judge_body(const RuleSet &set) {
  const Verdict verdict = first_match(set);
  question_.clear_texts();
  return verdict;
}

// ---- evaluation in two steps -------------------------------------------------------------------

bool Judge::reads_body(const RuleSet &set, Event event, const Call &call) {
  begin(event, call);
  bool reads = false;
  const std::vector<Rule> &rules = set.of(event);
  set.index_of(event).each(call.server, question_.values()[kTool].text(),
                           [&](std::uint32_t number) {
                             const Rule &rule = rules[number];
                             reads = (rule.reads & body_bits(event)) != 0 || rule.rewrite ||
                                     (rule.over && rule.over->what == Budget::What::destinations);
                             return reads;
                           });
  return reads;
}

bool Judge::is_large(const RuleSet &set, Event event, const Call &call, std::string_view result) {
  return call.asked_bytes() + result.size() > set.bytes_at_once() && reads_body(set, event, call);
}

Verdict Judge::refuse_large(const RuleSet &set) {
  reason_ = "rules must evaluate this message, but it is larger than " +
            std::to_string(set.bytes_at_once()) + " bytes (large_messages = \"refuse\")";
  Verdict verdict;
  verdict.kind = BH_VERDICT_BLOCK;
  verdict.rule = "security.large_messages";
  verdict.reason = reason_;
  return verdict;
}

Findings Judge::study(const RuleSet &set, Event event, const Call &call, std::string_view result) {
  looks_ = nullptr;
  begin(event, call, result);
  Findings out;
  const std::vector<Rule> &rules = set.of(event);
  set.index_of(event).each(
      call.server, question_.values()[kTool].text(), [&](std::uint32_t number) {
        const Rule &rule = rules[number];
        Findings::Of found{match_without_budget(rule), {}, {}};
        const bool counts_hosts =
            found.match == Match::yes && rule.over && rule.over->what == Budget::What::destinations;
        if (counts_hosts) {
          if (const char *fault = question_.find_hosts()) found.match = failed(kUnreadable + fault);
        }
        if (found.match == Match::error) found.fault = fault_;
        if (found.match == Match::yes && rule.rewrite && !question_.changeable().empty()) {
          found.rewritten = rule.rewrite->apply(question_.changeable());
        }
        const bool last = found.match == Match::error || (found.match == Match::yes && !rule.over);
        out.rules.emplace(&rule, std::move(found));
        return last;
      });
  out.hosts = question_.take_hosts();
  question_.clear_texts();
  return out;
}

Verdict Judge::conclude(const RuleSet &set, Event event, const Call &call, std::string_view result,
                        const Findings &findings) {
  // Also after an exception, later messages must not use these findings.
  struct Reset {
    const Findings *&known;
    ~Reset() { known = nullptr; }
  } const reset{known_};
  known_ = &findings;
  return event == Event::request    ? decide(set, call)
         : event == Event::response ? observe(set, call, result)
                                    : judge(set, call);
}

// ---- lists -----------------------------------------------------------------------------------

bool Judge::shows(const RuleSet &set, const Call &call) {
  looks_ = nullptr;
  begin(Event::request, call);
  question_.hide_what_differs();
  bool shown = true, may_pass = false;
  const std::string_view tool = call.method == "tools/call" ? call.name : std::string_view{};
  const std::vector<Rule> &rules = set.of(Event::request);
  set.index_of(Event::request).each(call.server, tool, [&](std::uint32_t number) {
    const Rule &rule = rules[number];
    const Match found = match(rule);
    if (found == Match::no) return false;
    if (found == Match::error || rule.over) {  // with other data, the rule may match or not
      may_pass = may_pass || rule.action != Action::block;
      return false;
    }
    shown = may_pass || rule.action != Action::block;
    return true;
  });
  return shown;
}

}  // namespace bulkhead::rules
