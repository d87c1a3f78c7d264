// Evaluates calls, results and other events against a set of rules. Single-threaded. Memory is
// reused between evaluations.
#pragma once

#include <cstddef>
#include <deque>
#include <expected>
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

// The decision for one message. The strings are valid until the next evaluation.
struct Verdict {
  std::uint32_t kind = BH_VERDICT_ALLOW;
  std::string_view rule, reason;
  std::string_view text;  // the rewritten text
  bool warned = false;
};

enum class Match : std::uint8_t { no, yes, error };

// The results of all conditions for a message that is too large for the reactor thread. The
// conditions are evaluated in advance on another thread. Budgets are not evaluated.
struct Findings {
  struct Of {
    Match match = Match::no;
    std::string fault;  // error message if `match` is error
    std::optional<Rewritten> rewritten;
  };
  std::unordered_map<const Rule *, Of> rules;  // of the rules up to the first one that decides
  std::set<std::string> hosts;                 // set if a matching rule counts destinations
};

// The result of evaluating one rule, for explanations. `within` means that the condition matches,
// but the budget is not exceeded.
struct Look {
  const Rule *rule = nullptr;
  enum class Found : std::uint8_t { matches, differs, within, error } found = Found::differs;
  std::string text;  // error message of a failed evaluation
};

class Judge {
 public:
  // Number of the latest calls with an ask verdict that are remembered as already counted. An older
  // call is counted again when it is approved.
  static constexpr std::size_t kMaxAsked = 4'096;

  // Provides monotonic time (steady_ms) and Unix time (unix_ms), both in milliseconds.
  struct Clock {
    std::function<std::uint64_t()> steady_ms, unix_ms;
  };
  explicit Judge(Clock clock) : clock_(std::move(clock)), question_(clock_.unix_ms) {}

  // Evaluates a call and, unless it is blocked, counts it. If `looks` is set, appends all evaluated
  // rules to it and does not count the call.
  Verdict decide(const RuleSet &set, const Call &call, std::vector<Look> *looks = nullptr);
  // Evaluates a result. Unless `looks` is set, adds the size of the result to the byte budgets that
  // count its call.
  Verdict observe(const RuleSet &set, const Call &call, std::string_view result,
                  std::vector<Look> *looks = nullptr);
  // Evaluates an event that is neither a call nor a result. call.event is the type of the event.
  Verdict judge(const RuleSet &set, const Call &call, std::vector<Look> *looks = nullptr);

  // Returns true if any rule that may match this message reads or rewrites its body, or counts its
  // destinations. If the message is a result, `event` is response.
  bool reads_body(const RuleSet &set, Event event, const Call &call);
  // Returns true if the message is too large for the reactor thread and a rule reads its body.
  bool is_large(const RuleSet &set, Event event, const Call &call, std::string_view result);
  // Returns the verdict for a large message if the rules reject such messages (refuses_large).
  Verdict refuse_large(const RuleSet &set);
  // Evaluates all conditions for a message, but does not count the message. May be called on
  // another thread if that thread has its own Judge.
  Findings study(const RuleSet &set, Event event, const Call &call, std::string_view result);
  // Does the same as decide(), observe() or judge(), but uses findings that study() returned for
  // the same message and the same rules.
  Verdict conclude(const RuleSet &set, Event event, const Call &call, std::string_view result,
                   const Findings &findings);

  // Returns false if the rules block every call to this target, whatever its arguments, session and
  // time.
  bool shows(const RuleSet &set, const Call &call);

  // Returns the counts, and the calls that they will or need not count, as a text of at most
  // max_bytes. If it would be longer, counts are omitted that could also be evicted (see Counters).
  // If that is not sufficient, returns an error message.
  std::expected<std::string, std::string> export_state(std::size_t max_bytes) const;
  // Replaces the counts by those in a text that another Judge has exported. What does not belong to
  // a rule of `set` is ignored. Returns false, and changes nothing, if the text is malformed.
  bool import_state(const RuleSet &set, std::string_view text);

 private:
  struct Charge {
    const Budget *budget;
    std::string key;
  };

  void begin(Event event, const Call &call, std::string_view result = {});
  Verdict first_match(const RuleSet &set);
  Verdict judge_body(const RuleSet &set);
  void charge_undecided(const RuleSet &set, const Call &call, std::uint64_t bytes);
  std::string key_of(const Rule &rule, const Budget &budget) const;
  Match match(const Rule &rule);
  Match match_without_budget(const Rule &rule);
  Match within(const Rule &rule, const Budget &budget);
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
  // For each exchange that is pending approval, the keys of the counts that already include it.
  std::unordered_map<std::uint64_t, std::vector<std::string>> asked_;
  std::deque<std::uint64_t> asked_order_;
  cel::Scratch scratch_;

  // State of the current evaluation.
  Question question_;
  std::vector<Look> *looks_ = nullptr;
  const Findings *known_ = nullptr;  // set if study() evaluated the conditions in advance
  std::string fault_, reason_, text_;
  std::vector<Charge> charges_;
};

}  // namespace bulkhead::rules
