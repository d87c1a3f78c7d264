#include "judge.hpp"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <bulkhead/cpp/basics.hpp>

#include "cel/json_value.hpp"
#include "uri.hpp"

namespace bulkhead::rules {
namespace {

using cel::Value;

constexpr char kNotKnown[] = "not known yet";
const std::string kUnreadable = "the destinations of the request cannot be counted: ";

// Roots that are equal for all calls of one principal to one target.
constexpr std::uint64_t kConstantRoots = bit(kMethod) | bit(kServer) | bit(kTool) | bit(kPrompt) |
                                         bit(kUri) | bit(kUriNormalized) | bit(kPrincipal) |
                                         kDefinitionBits;

// The body roots that rules of an event read.
constexpr std::uint64_t body_bits(Event event) {
  switch (event) {
    case Event::request:
      return kArgumentBits | bit(kMeta) | kBesideBits;
    case Event::response:
      return kResultBits;
    case Event::input_response:
      return kBodyBits | bit(kInputAction);
    default:
      return kBodyBits;
  }
}

const rapidjson::Value &empty_object() {
  static const rapidjson::Value value(rapidjson::kObjectType);
  return value;
}
const rapidjson::Value &empty_array() {
  static const rapidjson::Value value(rapidjson::kArrayType);
  return value;
}

void append_strings(const rapidjson::Value &value, std::string *out) {
  if (value.IsString()) {
    if (!out->empty()) *out += '\n';
    out->append(value.GetString(), value.GetStringLength());
  } else if (value.IsObject()) {
    for (const auto &each : value.GetObject()) append_strings(each.value, out);
  } else if (value.IsArray()) {
    for (const auto &each : value.GetArray()) append_strings(each, out);
  }
}

const rapidjson::Value &content_of(const rapidjson::Value &result) {
  for (const std::string_view name : {"content", "contents", "messages"}) {
    const rapidjson::Value *found = member(result, name);
    if (found != nullptr && found->IsArray()) return *found;
  }
  return empty_array();
}

std::string key_of(const std::string &rule_id, const Budget &budget, const Call &call,
                   std::string_view tool) {
  std::string key = rule_id;
  // Lengths keep the parts distinct for any content.
  const auto part = [&](bool wanted, std::string_view text) {
    if (wanted) key.append("\n").append(std::to_string(text.size())).append(":").append(text);
  };
  part(budget.by_session, std::to_string(call.session));
  part(budget.by_principal, call.principal);
  part(budget.by_process, call.process_name);
  part(budget.by_server, call.server);
  part(budget.by_tool, tool);
  return key;
}

}  // namespace

Call call_of(const bh_policy_request &request) {
  Call call;
  call.exchange = request.exchange;
  call.session = request.session;
  call.transport = bh::view(request.transport);
  call.peer = bh::view(request.peer);
  call.principal = bh::view(request.principal);
  call.process_name = bh::view(request.process_name);
  call.method = bh::view(request.method);
  call.server = bh::view(request.server);
  call.name = bh::view(request.name);
  call.arguments = bh::view(request.arguments);
  call.meta = bh::view(request.meta);
  call.again = (request.flags & BH_REQUEST_AGAIN) != 0;
  call.approved = (request.flags & BH_REQUEST_APPROVED) != 0;
  call.to_server = (request.flags & BH_REQUEST_TO_SERVER) != 0;
  if (!BH_HAS(bh_policy_request, &request, event)) return call;
  call.definition = bh::view(request.definition);
  call.session_calls = request.session_calls;
  call.session_age_ns = request.session_age_ns;
  call.pin = request.pin;
  call.event = request.event == BH_EVENT_INPUT_REQUEST    ? Event::input_request
               : request.event == BH_EVENT_INPUT_RESPONSE ? Event::input_response
               : request.event == BH_EVENT_NOTIFICATION   ? Event::notification
                                                          : Event::request;
  if (!BH_HAS(bh_policy_request, &request, extra)) return call;
  call.argument = bh::view(request.argument);
  call.context = bh::view(request.context);
  call.extra = bh::view(request.extra);
  if (BH_HAS(bh_policy_request, &request, claimed_name))
    call.claimed_name = bh::view(request.claimed_name);
  return call;
}

std::string_view Call::uri() const noexcept {
  const bool is_call = event == Event::request || event == Event::response;
  return is_call && method != "tools/call" && method != "prompts/get" ? name : std::string_view{};
}

// ---- roots -----------------------------------------------------------------------------------

void Judge::begin(Event event, const Call &call, std::string_view result) {
  call_ = &call;
  event_ = event;
  filled_ = 0;
  body_ = event == Event::request    ? std::string_view{}
          : event == Event::response ? result
          : call.arguments.empty()   ? std::string_view("{}")
                                     : call.arguments;
  arguments_parsed_ = body_parsed_ = hosts_known_ = false;
  charges_.clear();
  const bool is_call = event == Event::request || event == Event::response;
  const bool tool = call.method == "tools/call" || !is_call, prompt = call.method == "prompts/get";
  // For completion, the name may be a prompt or a resource template.
  const bool both = call.method == "completion/complete" && is_call;
  values_[kMethod] = Value::string(call.method);
  values_[kServer] = Value::string(call.server);
  values_[kTool] = Value::string(tool ? call.name : std::string_view{});
  values_[kPrompt] = Value::string(prompt || both ? call.name : std::string_view{});
  values_[kUri] = Value::string(call.uri());
  values_[kProcess] = Value::string(call.process_name);
  values_[kTransport] = Value::string(call.transport);
  values_[kPrincipal] = Value::string(call.principal);
  values_[kPeer] = Value::string(call.peer);
  values_[kClaimedName] = Value::string(call.claimed_name);
  values_[kSessionCalls] = Value::of(static_cast<std::int64_t>(call.session_calls));
  values_[kSessionAge] =
      Value::duration({static_cast<std::int64_t>(call.session_age_ns / 1'000'000'000),
                       static_cast<std::int32_t>(call.session_age_ns % 1'000'000'000)});
  filled_ =
      ((std::uint64_t{1} << kCommon) - 1) & ~bit(kSessionId) & ~bit(kTime) & ~bit(kUriNormalized);
  if (event == Event::request) {
    values_[kPinned] = Value::of(call.pin == BH_PIN_SAME);
    filled_ |= bit(kPinned);
  } else if (event == Event::notification) {
    values_[kRecipient] = Value::string(call.to_server ? "server" : "client");
    filled_ |= bit(kRecipient);
  }
}

const char *Judge::parse_arguments() {
  if (!arguments_parsed_) {
    arguments_parsed_ = true;
    arguments_fault_ = arguments_.parse(call_->arguments.empty() ? "{}" : call_->arguments);
    if (arguments_fault_ == nullptr && !arguments_.value().IsObject())
      arguments_fault_ = "not an object";
  }
  return arguments_fault_;
}

const char *Judge::parse_body() {
  if (!body_parsed_) {
    body_parsed_ = true;
    body_fault_ = result_.parse(body_);
    if (body_fault_ == nullptr && !result_.value().IsObject()) body_fault_ = "not an object";
  }
  return body_fault_;
}

void Judge::fill_arguments(bool as_text) {
  if (parse_arguments() != nullptr) return;
  values_[kArguments] = cel::json_value(arguments_.value());
  if (!as_text) return;
  arguments_text_.clear();
  if (!call_->arguments.empty()) {
    rapidjson::StringBuffer out;
    rapidjson::Writer<rapidjson::StringBuffer> writer(out);
    arguments_.value().Accept(writer);
    arguments_text_.assign(out.GetString(), out.GetSize());
  }
  values_[kArgumentsText] = Value::string(arguments_text_);
}

// Fills the members of params; `{}` if absent.
void Judge::fill_beside() {
  const auto set = [&](Root root, JsonText *json, std::string_view text, const char *fault) {
    const bool good =
        json->parse(text.empty() ? "{}" : text) == nullptr && json->value().IsObject();
    values_[root] = good ? cel::json_value(json->value()) : Value::error(fault);
  };
  set(kExtra, &extra_, call_->extra, "the other members of params are not an object");
  set(kCompletion, &argument_, call_->argument, "the argument is not an object");
  set(kCompletionContext, &context_, call_->context, "the context is not an object");
}

void Judge::fill_definition() {
  const bool good = !call_->definition.empty() && definition_.parse(call_->definition) == nullptr;
  const rapidjson::Value &item = good ? definition_.value() : empty_object();
  const rapidjson::Value *annotations = member(item, "annotations");
  const rapidjson::Value *description = member(item, "description");
  const bool object = annotations != nullptr && annotations->IsObject();
  values_[kAnnotations] = cel::json_value(object ? *annotations : empty_object());
  values_[kDescription] = description != nullptr && description->IsString()
                              ? cel::json_value(*description)
                              : Value::string({});
}

void Judge::fill_response() {
  const rapidjson::Value &result = result_.value();
  const rapidjson::Value *flag = member(result, "isError");
  const bool is_error = flag != nullptr && flag->IsBool() && flag->GetBool();
  values_[kIsError] = Value::of(is_error);
  values_[kStatus] = Value::string(is_error ? "error" : "ok");
  values_[kContent] = cel::json_value(content_of(result));
  const rapidjson::Value *structured = member(result, "structuredContent");
  values_[kStructured] = structured != nullptr ? cel::json_value(*structured) : Value::absent();
  response_text_.clear();
  append_strings(result, &response_text_);
  values_[kText] = Value::string(response_text_);
}

// Fills the body of an input or a notification from result_.
void Judge::fill_body() {
  const rapidjson::Value &body = result_.value();
  values_[kCommon] = cel::json_value(body);
  response_text_.clear();
  append_strings(body, &response_text_);
  values_[kCommon + 1] = Value::string(response_text_);
  if (event_ == Event::input_response) {
    const rapidjson::Value *action = member(body, "action");
    values_[kInputAction] =
        Value::string(action != nullptr && action->IsString() ? text_of(*action) : "");
  }
}

// Fills the requested slots that are not filled yet. Unavailable values are error values.
void Judge::fill(std::uint64_t slots) {
  slots &= ~filled_;
  if (slots == 0) return;
  if ((slots & bit(kSessionId)) != 0) {
    session_id_ = std::to_string(call_->session);
    values_[kSessionId] = Value::string(session_id_);
  }
  if ((slots & bit(kUriNormalized)) != 0) {
    const std::string_view uri = values_[kUri].text();
    uri_normalized_ = uri.empty() ? std::string() : normalized_uri(uri);
    values_[kUriNormalized] = Value::string(uri_normalized_);
  }
  if ((slots & bit(kTime)) != 0) {
    const std::uint64_t now = clock_.unix_ms();
    values_[kTime] = Value::timestamp(
        {static_cast<std::int64_t>(now / 1000), static_cast<std::int32_t>(now % 1000) * 1'000'000});
  }
  filled_ |= slots & (bit(kSessionId) | bit(kTime) | bit(kUriNormalized));
  if (event_ != Event::request) {
    if ((slots & body_bits(event_)) == 0) return;
    event_ == Event::response ? fill_response() : fill_body();
    filled_ |= body_bits(event_);
    return;
  }
  if ((slots & kArgumentBits) != 0) {
    fill_arguments((slots & bit(kArgumentsText)) != 0);
    filled_ |= bit(kArguments) | (slots & bit(kArgumentsText));
  }
  if ((slots & bit(kMeta)) != 0) {
    const bool good = meta_.parse(call_->meta.empty() ? "{}" : call_->meta) == nullptr &&
                      meta_.value().IsObject();
    values_[kMeta] = good ? cel::json_value(meta_.value()) : Value::error("_meta is not an object");
    filled_ |= bit(kMeta);
  }
  if ((slots & kBesideBits) != 0) {
    fill_beside();
    filled_ |= kBesideBits;
  }
  if ((slots & kDefinitionBits) != 0) {
    fill_definition();
    filled_ |= kDefinitionBits;
  }
}

// ---- one rule --------------------------------------------------------------------------------

Match Judge::failed(std::string text) {
  fault_ = std::move(text);
  return Match::error;
}

Match Judge::list_matches(const Rule &rule) const {
  if (call_->method != "tools/call" || call_->server != rule.server) return Match::no;
  const bool listed = std::binary_search(rule.tools.begin(), rule.tools.end(), call_->name);
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
  const bool counts = found == Match::yes && rule.over && filled_ != ~0ull;
  return counts ? within(rule.id, *rule.over) : found;
}

// Evaluates everything except the count.
Match Judge::match_without_budget(const Rule &rule) {
  if (event_ != Event::request && (rule.reads & body_bits(event_)) != 0 &&
      parse_body() != nullptr) {
    const char *what = event_ == Event::response ? "the result is " : "the message is ";
    return failed(std::string(what) + body_fault_);
  }
  if (rule.by_list) return list_matches(rule);
  for (const auto &[slot, text] : rule.begins) {
    if (!values_[slot].text().starts_with(text)) return Match::no;
  }
  if (rule.condition) {
    if (event_ == Event::request && (rule.reads & kArgumentBits) != 0 && filled_ != ~0ull &&
        parse_arguments() != nullptr) {
      return failed(std::string("the arguments are ") + arguments_fault_);
    }
    fill(rule.reads);
    // Conditions may read the data of a call several times, so the budget grows with its size.
    const std::uint64_t budget = cel::Program::kDefaultBudget + call_->asked_bytes() + body_.size();
    const Value value = rule.condition->evaluate(values_, scratch_, budget);
    if (value.is_error()) return failed(rule.condition->explain(value).to_string());
    if (!value.is(cel::Kind::kBool)) return failed("the condition did not return a bool");
    if (!value.as_bool()) return Match::no;
  }
  return Match::yes;
}

// Fills hosts_ from the whole request. Returns nullptr, or the error.
const char *Judge::find_hosts() {
  if (hosts_known_) return nullptr;
  hosts_.clear();
  if (const char *fault = parse_arguments()) return fault;
  collect_hosts(arguments_.value(), &hosts_);
  collect_hosts(call_->uri(), &hosts_);
  const std::pair<JsonText *, std::string_view> beside[] = {{&meta_, call_->meta},
                                                            {&argument_, call_->argument},
                                                            {&context_, call_->context},
                                                            {&extra_, call_->extra}};
  for (const auto &[json, text] : beside) {
    if (text.empty()) continue;
    if (const char *fault = json->parse(text)) return fault;
    collect_hosts(json->value(), &hosts_);
  }
  hosts_known_ = true;
  return nullptr;
}

// Checks whether the rule's budget is exceeded. If not, the rule does not match, and the call is
// counted if it is allowed.
Match Judge::within(const std::string &rule_id, const Budget &budget) {
  std::string key = key_of(rule_id, budget, *call_, values_[kTool].text());
  if (call_->again && is_counted(key)) return Match::no;
  Counters::Addition addition{call_->asked_bytes(), &hosts_};
  if (budget.what == Budget::What::destinations && known_ == nullptr) {
    if (const char *fault = find_hosts()) return failed(kUnreadable + fault);
  }
  if (counters_.over(budget, key, addition, clock_.steady_ms())) return Match::yes;
  charges_.push_back({&budget, std::move(key)});
  return Match::no;
}

// For a call that is evaluated again: true if it was counted before the approval. Budgets loaded
// since then have not counted it.
bool Judge::is_counted(const std::string &key) const {
  // These rules allowed the call; another policy required the approval.
  if (!call_->approved) return true;
  const auto at = asked_.find(call_->exchange);
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

// The text that a rule may rewrite.
std::string_view Judge::changeable() const {
  return event_ == Event::request ? call_->arguments : body_;
}

Verdict Judge::rewritten(const Rule &rule) {
  Verdict verdict;
  verdict.rule = rule.id;
  verdict.reason = rule.reason;
  if (changeable().empty() || !rule.rewrite) return verdict;  // nothing to rewrite
  Rewritten made;
  if (known_ == nullptr) {
    made = rule.rewrite->apply(changeable());
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

// Stores the counts of a call that waits for approval.
void Judge::remember(bool asks) {
  if (!asks) {
    if (call_->again) asked_.erase(call_->exchange);  // its entry in asked_order_ is removed later
    return;
  }
  const auto [at, fresh] = asked_.try_emplace(call_->exchange);
  for (const Charge &each : charges_) at->second.push_back(each.key);
  if (!fresh) return;
  asked_order_.push_back(call_->exchange);
  if (asked_order_.size() <= kMaxAsked) return;
  asked_.erase(asked_order_.front());
  asked_order_.pop_front();
}

void Judge::charge() {
  const std::uint64_t now = clock_.steady_ms();
  for (Charge &each : charges_) {
    counters_.add(*each.budget, each.key, {call_->asked_bytes(), &hosts_}, now);
    if (each.budget->what == Budget::What::bytes)
      counters_.expect_result(call_->exchange, *each.budget, std::move(each.key));
  }
}

Verdict Judge::first_match(const RuleSet &set) {
  Verdict verdict;
  const std::vector<Rule> &rules = set.of(event_);
  set.index_of(event_).each(call_->server, values_[kTool].text(), [&](std::uint32_t number) {
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
  if (known_ != nullptr) hosts_ = known_->hosts;
  const Verdict verdict = first_match(set);
  if (looks != nullptr) return verdict;
  remember(verdict.kind == BH_VERDICT_ASK);
  if (verdict.kind != BH_VERDICT_BLOCK) charge();
  return verdict;
}

Verdict Judge::observe(const RuleSet &set, const Call &call, std::string_view result,
                       std::vector<Look> *looks) {
  looks_ = looks;
  begin(Event::response, call, result);
  if (looks == nullptr) counters_.add_result(call.exchange, result.size(), clock_.steady_ms());
  return judge_body(set);
}

Verdict Judge::judge(const RuleSet &set, const Call &call, std::vector<Look> *looks) {
  looks_ = looks;
  begin(call.event, call);
  return judge_body(set);
}

Verdict Judge::judge_body(const RuleSet &set) {
  const Verdict verdict = first_match(set);
  result_.clear();
  return verdict;
}

// ---- evaluation in two steps -------------------------------------------------------------------

bool Judge::reads_body(const RuleSet &set, Event event, const Call &call) {
  begin(event, call);
  bool reads = false;
  const std::vector<Rule> &rules = set.of(event);
  set.index_of(event).each(call.server, values_[kTool].text(), [&](std::uint32_t number) {
    const Rule &rule = rules[number];
    reads = (rule.reads & body_bits(event)) != 0 || rule.rewrite ||
            (rule.over && rule.over->what == Budget::What::destinations);
    return reads;
  });
  return reads;
}

Findings Judge::study(const RuleSet &set, Event event, const Call &call, std::string_view result) {
  looks_ = nullptr;
  begin(event, call, result);
  Findings out;
  const std::vector<Rule> &rules = set.of(event);
  set.index_of(event).each(call.server, values_[kTool].text(), [&](std::uint32_t number) {
    const Rule &rule = rules[number];
    Findings::Of found{match_without_budget(rule), {}, {}};
    const bool counts_hosts =
        found.match == Match::yes && rule.over && rule.over->what == Budget::What::destinations;
    if (counts_hosts) {
      if (const char *fault = find_hosts()) found.match = failed(kUnreadable + fault);
    }
    if (found.match == Match::error) found.fault = fault_;
    if (found.match == Match::yes && rule.rewrite && !changeable().empty()) {
      found.rewritten = rule.rewrite->apply(changeable());
    }
    const bool last = found.match == Match::error || (found.match == Match::yes && !rule.over);
    out.rules.emplace(&rule, std::move(found));
    return last;
  });
  if (hosts_known_) out.hosts = std::move(hosts_);
  arguments_.clear();
  result_.clear();
  return out;
}

Verdict Judge::conclude(const RuleSet &set, Event event, const Call &call, std::string_view result,
                        const Findings &findings) {
  known_ = &findings;
  const Verdict verdict = event == Event::request    ? decide(set, call)
                          : event == Event::response ? observe(set, call, result)
                                                     : judge(set, call);
  known_ = nullptr;
  return verdict;
}

// ---- lists -----------------------------------------------------------------------------------

// Values that may differ in another call of the same target by the same principal are unknown, and
// so are conditions that depend on them; && and || decide without them if possible.
void Judge::hide_what_differs() {
  fill(kDefinitionBits | bit(kUriNormalized));
  for (std::uint32_t slot = 0; slot < kRoots; ++slot) {
    if ((kConstantRoots & bit(slot)) == 0) values_[slot] = Value::error(kNotKnown);
  }
  // A template stands for URIs that are not known yet.
  if (call_->name.find('{') != std::string_view::npos && !values_[kUri].text().empty())
    values_[kUri] = values_[kUriNormalized] = Value::error(kNotKnown);
  filled_ = ~0ull;
}

bool Judge::shows(const RuleSet &set, const Call &call) {
  looks_ = nullptr;
  begin(Event::request, call);
  hide_what_differs();
  bool shown = true, may_pass = false;
  const std::string_view tool = call.method == "tools/call" ? call.name : std::string_view{};
  const std::vector<Rule> &rules = set.of(Event::request);
  set.index_of(Event::request).each(call.server, tool, [&](std::uint32_t number) {
    const Rule &rule = rules[number];
    const Match found = match(rule);
    if (found == Match::no) return false;
    if (found == Match::error || rule.over) {  // it may match or not
      may_pass = may_pass || rule.action != Action::block;
      return false;
    }
    shown = may_pass || rule.action != Action::block;
    return true;
  });
  return shown;
}

}  // namespace bulkhead::rules
