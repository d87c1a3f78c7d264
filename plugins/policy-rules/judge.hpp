// Judges calls and results by a set of rules. Thread: one; memory is used again from call to call.
#pragma once

#include <bulkhead/abi/ext/policy.h>

#include <array>
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
#include "json_text.hpp"
#include "rule_set.hpp"

namespace bulkhead::rules {

inline constexpr std::string_view kEvaluationError = "security.mcp.evaluation_error";

// A resolved call. Texts are borrowed.
struct Call {
  std::uint64_t exchange = 0, session = 0, session_calls = 0, session_age_ns = 0;
  std::uint32_t pin = BH_PIN_UNKNOWN;
  std::string_view transport, peer, principal, process_name, method, server, name, arguments, meta,
      definition, argument, context, extra, claimed_name;
  Event event = Event::request;  // otherwise `arguments` is what is judged, and `name` a tool's
  bool to_server = false;        // of a notification
  bool again = false;            // asked once more, after a person has allowed it
  bool approved = false;         // and it was these rules that wanted a person's word

  // Of a request: the URI that its client has chosen, or what completion names.
  std::string_view uri() const noexcept;
  // Everything that a client puts into a request for its server. Names of tools and prompts are not
  // counted: they are the server's own.
  std::size_t asked_bytes() const noexcept {
    return uri().size() + arguments.size() + meta.size() + argument.size() + context.size() +
           extra.size();
  }
};
Call call_of(const bh_policy_request &request);

// Texts live until the next question.
struct Verdict {
  std::uint32_t kind = BH_VERDICT_ALLOW;
  std::string_view rule, reason;
  std::string_view text;  // of a rewrite
  bool warned = false;
};

enum class Match : std::uint8_t { no, yes, error };

// What the conditions of the rules are in one question, without its counts: found beforehand, on
// another thread, where a message is too large to be read between two turns of the loop.
struct Findings {
  struct Of {
    Match match = Match::no;
    std::string fault;  // of an error
    std::optional<Rewritten> rewritten;
  };
  std::unordered_map<const Rule *, Of> rules;  // up to the one that decides, whatever is counted
  std::set<std::string> hosts;                 // where a rule counts destinations
};

// One rule that was looked at, for people.
struct Look {
  const Rule *rule = nullptr;
  enum class Found : std::uint8_t { matches, differs, within, error } found = Found::differs;
  std::string text;  // of an error
};

class Judge {
 public:
  // Calls that a person is asked about, of which it is known what they were counted for; one before
  // them is counted anew.
  static constexpr std::size_t kMostAsked = 4'096;

  // Milliseconds of a clock that never goes back, and of the calendar's (Unix time).
  struct Clock {
    std::function<std::uint64_t()> steady_ms, unix_ms;
  };
  explicit Judge(Clock clock) : clock_(std::move(clock)) {}

  // `looks`: what was looked at is appended; nothing is counted then.
  Verdict decide(const RuleSet &set, const Call &call, std::vector<Look> *looks = nullptr);
  Verdict observe(const RuleSet &set, const Call &call, std::string_view result,
                  std::vector<Look> *looks = nullptr);
  // Of what is neither a call nor its result: call.event says what.
  Verdict judge(const RuleSet &set, const Call &call, std::vector<Look> *looks = nullptr);

  // Does a rule that this message could match read its body, or change it? `event`: response for a
  // result.
  bool reads_body(const RuleSet &set, Event event, const Call &call);
  // Looks at what no count decides. Counts nothing; another thread may do it with a judge of its
  // own.
  Findings study(const RuleSet &set, Event event, const Call &call, std::string_view result);
  // decide(), observe() or judge() of a question that has been studied with the same set.
  Verdict conclude(const RuleSet &set, Event event, const Call &call, std::string_view result,
                   const Findings &findings);

  // Could a call of it be let through, whatever its arguments, its session and the time are?
  bool shows(const RuleSet &set, const Call &call);

 private:
  struct Charge {
    const Budget *budget;
    std::string key;
  };

  void begin(Event event, const Call &call, std::string_view result = {});
  void fill(std::uint64_t slots);
  void fill_arguments(bool as_text);
  void fill_beside();
  void fill_definition();
  void fill_response();
  void fill_body();
  Verdict first_match(const RuleSet &set);
  Verdict judge_body(const RuleSet &set);
  void hide_what_differs();
  Match match(const Rule &rule);
  Match meets(const Rule &rule);
  Match within(const std::string &rule_id, const Budget &budget);
  Match list_matches(const Rule &rule) const;
  Match failed(std::string text);
  const char *parse_arguments();
  const char *parse_body();
  const char *find_hosts();
  std::string_view changeable() const;
  void note(const Rule &rule, Match match);
  Verdict act(const Rule &rule);
  Verdict evaluation_error(const Rule &rule);
  Verdict rewritten(const Rule &rule);
  bool is_counted(const std::string &key) const;
  void remember(bool asks);
  void charge();

  const Clock clock_;
  Counters counters_;
  // By exchange: the keys of the counts that have it.
  std::unordered_map<std::uint64_t, std::vector<std::string>> asked_;
  std::deque<std::uint64_t> asked_order_;
  cel::Scratch scratch_;
  JsonText arguments_, meta_, definition_, result_, argument_, context_, extra_;

  // Of the question that is being answered.
  const Call *call_ = nullptr;
  std::string_view body_;  // the result, or what else is judged
  std::vector<Look> *looks_ = nullptr;
  const Findings *known_ = nullptr;  // of a question that has been studied
  Event event_ = Event::request;
  std::array<cel::Value, kRoots> values_;
  std::uint64_t filled_ = 0;
  const char *arguments_fault_ = nullptr, *body_fault_ = nullptr;
  bool arguments_parsed_ = false, body_parsed_ = false;
  std::string fault_, reason_, text_, session_id_, uri_normalized_, arguments_text_, response_text_;
  std::set<std::string> hosts_;
  bool hosts_known_ = false;
  std::vector<Charge> charges_;
};

}  // namespace bulkhead::rules
