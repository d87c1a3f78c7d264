#include "commands/profile_policies.hpp"

#include <optional>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/json.hpp"
#include "command_line/commands.hpp"
#include "embed/policy_stack.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "profile/policy_mark.hpp"
#include "sources/profile_source.hpp"
#include "state/list_store.hpp"

namespace bulkhead::program {
namespace {

using bh::json::append_member;
using bh::json::member_text;
using bh::json::Raw;

// Returns a copy of the object with a new value for the member `name`. An empty value removes the
// member.
std::string with_member(std::string_view object, std::string_view name, std::string_view json) {
  std::string out = "{", scratch;
  mcp::for_each_member(object, [&](std::string_view key, std::string_view value) {
    const std::string_view plain = mcp::unquote(key, &scratch);
    if (plain != name) append_member(&out, plain, Raw{value});
  });
  if (!json.empty()) append_member(&out, name, Raw{json});
  return out + "}";
}

// A policy engine for PolicyStack. It takes its decisions from the explanations that one policy
// gives.
class Explained {
 public:
  Explained(const LonePolicy &policy, std::string_view call) : policy_(policy), call_(call) {}

  static const bh_policy &table();

  std::uint32_t needs() const { return policy_.needs(); }
  bh_status decide(const bh_policy_request &request, bh_verdict *out, bh_error *error) {
    std::string call = with_member(call_, "result", {});
    if (request.arguments.n != 0) {
      call = with_member(call, "arguments", bh::view(request.arguments));
    }
    return ask(call, "request", &request_, out, error);
  }
  bh_status observe(bh_str result, bh_verdict *out, bh_error *error) {
    return ask(with_member(call_, "result", bh::view(result)), "response", &response_, out, error);
  }

  // Returns true if the policy was evaluated but cannot explain its decision.
  bool unknown() const { return unknown_; }
  // Returns the error that the policy found in the call, if any.
  const std::optional<Error> &fault() const { return fault_; }
  std::string json() const {
    std::string out = "{";
    append_member(&out, "policy", policy_.id());
    append_member(&out, "plugin", policy_.name());
    if (!request_.empty()) append_member(&out, "request", Raw{request_});
    if (!response_.empty()) append_member(&out, "response", Raw{response_});
    if (unknown_) {
      append_member(&out, "not_explained", "does not support explanations (bh.explain/1)");
    } else if (request_.empty() && response_.empty()) {
      append_member(&out, "not_explained", "not evaluated");
    }
    return out + "}";
  }
  const LonePolicy &policy() const { return policy_; }

 private:
  bh_status ask(const std::string &call, std::string_view event, std::string *answer,
                bh_verdict *out, bh_error *error) {
    out->verdict = BH_VERDICT_ALLOW;
    unknown_ = unknown_ || !policy_.explains();
    if (unknown_) return BH_OK;
    const auto said = policy_.explain(call);
    if (!said) {
      fault_ = said.error();
      return bh::fail(error, said.error().code, said.error().text);
    }
    *answer = mcp::member(*said, event);
    rule_ = member_text(*answer, "rule");
    reason_ = member_text(*answer, "reason");
    rewritten_ = mcp::member(*answer, "rewritten");
    const std::string decision = member_text(*answer, "decision");
    out->verdict = decision == "allow"     ? BH_VERDICT_ALLOW
                   : decision == "ask"     ? BH_VERDICT_ASK
                   : decision == "rewrite" ? BH_VERDICT_REWRITE
                                           : BH_VERDICT_BLOCK;
    out->rule = bh::str(rule_);
    out->reason = bh::str(reason_);
    out->arguments = bh::str(rewritten_);
    out->flags = mcp::member(*answer, "warned") == "true" ? BH_VERDICT_WARNED : 0;
    return BH_OK;
  }

  const LonePolicy &policy_;
  std::string_view call_;
  std::string request_, response_, rule_, reason_, rewritten_;
  bool unknown_ = false;
  std::optional<Error> fault_;
};

Explained &explained(void *self) {
  return *static_cast<Explained *>(self);
}

const bh_policy &Explained::table() {
  static constexpr bh_policy table{
      sizeof(bh_policy),
      0,
      [](void *self) { return explained(self).needs(); },
      [](void *self, const bh_policy_request *request, bh_verdict *out, bh_error *error) {
        return explained(self).decide(*request, out, error);
      },
      [](void *self, const bh_policy_request *, bh_str result, bh_verdict *out, bh_error *error) {
        return explained(self).observe(result, out, error);
      },
      [](void *, const bh_policy_request *, bh_error *) -> bh_status { return BH_E_UNSUPPORTED; },
      nullptr};
  return table;
}

// Evaluates a call with all policies.
class Together {
 public:
  Together(const std::vector<std::unique_ptr<LonePolicy>> &policies, std::string_view call)
      : call_(call) {
    parts_.reserve(policies.size());
    std::vector<PolicyStack::Engine> engines;
    for (const auto &policy : policies) {
      parts_.emplace_back(*policy, call);
      engines.push_back({&Explained::table(), &parts_.back()});
    }
    // No limit is needed: the policies decide immediately, so no request is ever stored.
    stack_.use(std::move(engines), ~std::uint64_t{0});
    gate_.use(&PolicyStack::table(), &stack_);
  }

  Result<std::string> explain() {
    const bh_policy_request request = request_of();
    const Gate::Decision decision = gate_.decide(request);
    std::string out = "{";
    append_member(&out, "request", Raw{answer(decision)});
    if (const Error *fault = wrong()) return std::unexpected(*fault);
    const std::string_view result = mcp::member(call_, "result");
    if (decision.verdict != Gate::Verdict::refuse && !result.empty()) {
      append_member(&out, "response", Raw{answer(gate_.observe(request, result))});
      if (const Error *fault = wrong()) return std::unexpected(*fault);
    }
    std::string each;
    for (const Explained &part : parts_) each += (each.empty() ? "" : ",") + part.json();
    append_member(&out, "policies", Raw{"[" + each + "]"});
    return out + "}";
  }

 private:
  // Returns a request that contains only the members that determine which policies are called. The
  // policies read all other members from the call.
  bh_policy_request request_of() const {
    bh_policy_request request{};
    request.size = sizeof request;
    request.exchange = 1;
    request.arguments = bh::str(mcp::member(call_, "arguments"));
    const std::string on = member_text(call_, "on");
    request.event = on == "mcp.input_request"    ? BH_EVENT_INPUT_REQUEST
                    : on == "mcp.input_response" ? BH_EVENT_INPUT_RESPONSE
                    : on == "mcp.notification"   ? BH_EVENT_NOTIFICATION
                                                 : BH_EVENT_CALL;
    return request;
  }

  std::string answer(const Gate::Decision &decision) const {
    const bool refused = decision.verdict == Gate::Verdict::refuse;
    std::string out = "{";
    const Explained *unknown = refused && !decision.asks ? nullptr : unknown_part();
    if (unknown != nullptr) {
      append_member(&out, "decision", "unknown");
      append_member(&out, "rule", "");
      append_member(&out, "reason",
                    "the policy \"" + unknown->policy().id() + "\" (" + unknown->policy().name() +
                        ") does not support explanations");
    } else {
      append_member(&out, "decision",
                    decision.asks                                ? "ask"
                    : refused                                    ? "block"
                    : decision.verdict == Gate::Verdict::rewrite ? "rewrite"
                                                                 : "allow");
      append_member(&out, "rule", decision.rule);
      append_member(&out, "reason", decision.reason);
    }
    append_member(&out, "warned", Raw{decision.warned ? "true" : "false"});
    if (!decision.replacement.empty()) append_member(&out, "rewritten", Raw{decision.replacement});
    return out + "}";
  }

  const Explained *unknown_part() const {
    for (const Explained &part : parts_) {
      if (part.unknown()) return &part;
    }
    return nullptr;
  }
  const Error *wrong() const {
    for (const Explained &part : parts_) {
      const auto &fault = part.fault();
      if (fault.has_value()) return &*fault;
    }
    return nullptr;
  }

  std::string_view call_;
  std::vector<Explained> parts_;
  PolicyStack stack_;
  Gate gate_;
};

}  // namespace

bool ProfilePolicies::load() {
  auto loaded = load_to_look(arguments_, Transports::none);
  if (!loaded) {
    report_config_errors(loaded.error());
    return false;
  }
  file_ = loaded->file;
  mark_ = first_policy_mark(loaded->profile.policies);
  std::vector<std::string> mistakes;
  if (loaded->profile.policies.empty()) mistakes.emplace_back("the profile has no policy");
  for (const PluginUse &use : loaded->profile.policies) {
    policies_.push_back(std::make_unique<LonePolicy>());
    for (std::string &line : policies_.back()->load(use, loaded->profile)) {
      mistakes.push_back(std::move(line));
    }
  }
  if (!mistakes.empty()) report_config_errors(mistakes);
  profile_ = std::move(loaded->profile);
  load_existing_lists(&profile_);
  return mistakes.empty();
}

Result<std::string> ProfilePolicies::explain(std::string_view call) const {
  if (policies_.size() == 1) return policies_.front()->explain(call);
  const std::size_t first = call.find_first_not_of(" \t\r\n");
  const std::size_t last = call.find_last_not_of(" \t\r\n");
  if (first != call.npos) call = call.substr(first, last + 1 - first);
  if (!call.starts_with('{') || !mcp::valid_json(call)) {
    return fail(BH_E_INVALID, "a call must be a JSON object");
  }
  return Together(policies_, call).explain();
}

}  // namespace bulkhead::program
