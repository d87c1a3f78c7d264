// Evaluates calls and results against a set of rules. Single-threaded. Memory is reused between
// calls.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "counters.hpp"
#include "question.hpp"
#include "rule_set.hpp"

namespace bulkhead::rules {

inline constexpr std::string_view kEvaluationError = "security.mcp.evaluation_error";

// The decision for one message. Its strings are valid until the next evaluation.
struct Verdict {
  std::uint32_t kind = BH_VERDICT_ALLOW;
  std::string_view rule, reason;
  std::string_view text;  // the new text of a rewrite
  bool warned = false;
};

enum class Match : std::uint8_t { no, yes, error };

// The results of all conditions for one message, without budgets. If the message is too large for
// the reactor thread, another thread evaluates the conditions in advance.
struct Findings {
  struct Of {
    Match match = Match::no;
    std::string fault;  // set if match is error
    std::optional<Rewritten> rewritten;
  };
  std::unordered_map<const Rule *, Of> rules;  // up to the deciding rule
  std::set<std::string> hosts;                 // set if a rule counts destinations
};

// An evaluated rule, for explanations.
struct Look {
  const Rule *rule = nullptr;
  enum class Found : std::uint8_t { matches, differs, within, error } found = Found::differs;
  std::string text;  // set if the evaluation failed
};

class Judge {
 public:
  // Maximum number of calls pending approval whose counts are stored. If this number is exceeded,
  // the oldest call is counted again when it is evaluated again.
  static constexpr std::size_t kMaxAsked = 4'096;

  // A monotonic clock and Unix time, both in milliseconds.
  struct Clock {
    std::function<std::uint64_t()> steady_ms, unix_ms;
  };
  explicit Judge(Clock clock) : clock_(std::move(clock)), question_(clock_.unix_ms) {}

  // If `looks` is set, the evaluated rules are added to it, and nothing is counted.
  Verdict decide(const RuleSet &set, const Call &call, std::vector<Look> *looks = nullptr);
  Verdict observe(const RuleSet &set, const Call &call, std::string_view result,
                  std::vector<Look> *looks = nullptr);
  // Evaluates an event other than a call or its result; see call.event.
  Verdict judge(const RuleSet &set, const Call &call, std::vector<Look> *looks = nullptr);

  // Returns true if a rule that may match this message reads or rewrites its body. For a result,
  // `event` is response.
  bool reads_body(const RuleSet &set, Event event, const Call &call);
  // Evaluates all conditions in advance, without counting. May run on another thread with its own
  // Judge.
  Findings study(const RuleSet &set, Event event, const Call &call, std::string_view result);
  // Equivalent to decide(), observe() or judge(), for a message whose `findings` come from study()
  // with the same set.
  Verdict conclude(const RuleSet &set, Event event, const Call &call, std::string_view result,
                   const Findings &findings);

  // Returns true if a call to this target could be allowed for some combination of arguments,
  // session and time.
  bool shows(const RuleSet &set, const Call &call);

 private:
  struct Charge {
    const Budget *budget;
    std::string key;
  };

  void begin(Event event, const Call &call, std::string_view result = {});
  Verdict first_match(const RuleSet &set);
  Verdict judge_body(const RuleSet &set);
  Match match(const Rule &rule);
  Match match_without_budget(const Rule &rule);
  Match within(const std::string &rule_id, const Budget &budget);
  Match list_matches(const Rule &rule) const;
  Match failed(std::string text);
  void note(const Rule &rule, Match match);
  Verdict act(const Rule &rule);
  Verdict evaluation_error(const Rule &rule);
  Verdict rewritten(const Rule &rule);
  bool is_counted(const std::string &key) const;
  void remember(bool asks);
  void charge();

  const Clock clock_;
  Counters counters_;
  // For each exchange: the keys of the counts that include the call.
  std::unordered_map<std::uint64_t, std::vector<std::string>> asked_;
  std::deque<std::uint64_t> asked_order_;
  cel::Scratch scratch_;

  // State of the current evaluation.
  Question question_;
  std::vector<Look> *looks_ = nullptr;
  const Findings *known_ = nullptr;  // set if the conditions were evaluated in advance
  std::string fault_, reason_, text_;
  std::vector<Charge> charges_;
};

}  // namespace bulkhead::rules
