#include "explain.hpp"

#include <algorithm>
#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/policy.hpp>

namespace bulkhead::rules {
namespace {

using bh::json::Writer;

constexpr std::string_view kReservedKeys[] = {
    "server",        "name",   "method",      "arguments",    "meta",      "definition",
    "transport",     "peer",   "principal",   "process_name", "session",   "session_calls",
    "session_age_s", "pinned", "result",      "on",           "to_server", "argument",
    "context",       "extra",  "claimed_name"};

// A call described in JSON. Borrows strings from the description; owns the JSON texts of the call.
class Described {
 public:
  // Reads the description. Returns the error, or an empty string on success.
  std::string read(const rapidjson::Value &json) {
    if (!json.IsObject()) return "a call must be a JSON object";
    for (const auto &each : json.GetObject()) {
      const std::string_view name = text_of(each.name);
      if (std::find(std::begin(kReservedKeys), std::end(kReservedKeys), name) ==
          std::end(kReservedKeys)) {
        const std::string_view near = nearest(name, kReservedKeys);
        return "unknown member \"" + std::string(name.substr(0, 80)) + "\"" +
               (near.empty() ? "" : "; did you mean \"" + std::string(near) + "\"?");
      }
    }
    call.method = "tools/call";
    call.principal = "local";
    text(json, "server", &call.server);
    text(json, "name", &call.name);
    text(json, "method", &call.method);
    text(json, "transport", &call.transport);
    text(json, "peer", &call.peer);
    text(json, "principal", &call.principal);
    text(json, "process_name", &call.process_name);
    text(json, "claimed_name", &call.claimed_name);
    object(json, "arguments", &arguments_, &call.arguments);
    object(json, "meta", &meta_, &call.meta);
    object(json, "definition", &definition_, &call.definition);
    object(json, "argument", &argument_, &call.argument);
    object(json, "context", &context_, &call.context);
    object(json, "extra", &extra_, &call.extra);
    has_result = object(json, "result", &result_, &result);
    call.session = number(json, "session", 1);
    call.session_calls = number(json, "session_calls", 1);
    call.session_age_ns =
        std::min<std::uint64_t>(number(json, "session_age_s", 0), 1'000'000'000) * 1'000'000'000;
    std::string_view on = to_string(Event::request);
    text(json, "on", &on);
    const auto event = event_named(on);
    if (!event || event == Event::response) {
      wrong_ =
          "\"on\" must be mcp.request, mcp.input_request, mcp.input_response or mcp.notification";
    } else {
      call.event = *event;
    }
    if (const rapidjson::Value *to_server = member(json, "to_server"))
      call.to_server = to_server->IsBool() && to_server->GetBool();
    if (const rapidjson::Value *pinned = member(json, "pinned")) {
      if (!pinned->IsBool()) wrong_ = "\"pinned\" must be true or false";
      call.pin = pinned->IsBool() && pinned->GetBool() ? BH_PIN_SAME : BH_PIN_UNKNOWN;
    }
    const bool is_call = call.event == Event::request;
    if (wrong_.empty() && (call.server.empty() || (is_call && call.name.empty())))
      wrong_ = is_call ? "a call requires \"server\" and \"name\"" : "an event requires \"server\"";
    if (wrong_.empty() && !is_call && has_result) wrong_ = "only calls can have a \"result\"";
    if (wrong_.empty() && is_call) present_as_host(member(json, "extra"));
    return wrong_;
  }

  Call call;
  std::string_view result;
  bool has_result = false;
  bool undecided = false;  // see bh::is_undecided()

 private:
  // Changes the call to what the host presents to policies: requests about a task are calls of its
  // tool, and `arguments` is an unknown member of params in requests that do not have arguments.
  // `extra` contains the unknown members, or is nullptr.
  void present_as_host(const rapidjson::Value *extra) {
    undecided = bh::is_undecided(call.method);
    const bool about_task =
        call.method == "tasks/update" || (undecided && call.method.starts_with("tasks/"));
    if (!about_task && (call.method == "tools/call" || call.method == "prompts/get")) return;
    if (about_task) call.method = "tools/call";
    if (call.arguments.empty()) return;
    call.arguments = {};
    if (extra != nullptr && member(*extra, "arguments") != nullptr) return;
    const bool alone = extra == nullptr || extra->ObjectEmpty();
    extra_ = "{\"arguments\":" + arguments_ + (alone ? "}" : "," + extra_.substr(1));
    call.extra = extra_;
  }
  void text(const rapidjson::Value &json, std::string_view name, std::string_view *out) {
    const rapidjson::Value *found = member(json, name);
    if (found == nullptr) return;
    if (found->IsString())
      *out = text_of(*found);
    else
      wrong_ = "\"" + std::string(name) + "\" must be a string";
  }
  bool object(const rapidjson::Value &json, std::string_view name, std::string *keep,
              std::string_view *out) {
    const rapidjson::Value *found = member(json, name);
    if (found == nullptr) return false;
    if (!found->IsObject()) wrong_ = "\"" + std::string(name) + "\" must be a JSON object";
    *keep = json_of(*found);
    *out = *keep;
    return true;
  }
  std::uint64_t number(const rapidjson::Value &json, std::string_view name, std::uint64_t usual) {
    const rapidjson::Value *found = member(json, name);
    if (found == nullptr) return usual;
    if (found->IsUint64()) return found->GetUint64();
    wrong_ = "\"" + std::string(name) + "\" must be a whole number";
    return usual;
  }

  std::string arguments_, meta_, definition_, argument_, context_, extra_, result_, wrong_;
};

std::string_view kind_name(std::uint32_t kind) {
  constexpr std::string_view names[] = {"allow", "ask", "block", "rewrite"};
  return names[(kind - BH_VERDICT_ALLOW) % 4];
}

std::string found_text(const Look &look) {
  switch (look.found) {
    case Look::Found::matches:
      return "matches";
    case Look::Found::within:
      return "matches, but its budget is not exceeded";
    case Look::Found::error:
      return "cannot be evaluated: " + look.text;
    default:
      return "does not match";
  }
}

void put_answer(Writer &json, std::string_view key, const Verdict &verdict,
                const std::vector<Look> &looks) {
  json.key(key)
      .begin_object()
      .member("decision", kind_name(verdict.kind))
      .member("rule", verdict.rule)
      .member("reason", verdict.reason)
      .member("warned", verdict.warned);
  if (verdict.kind == BH_VERDICT_REWRITE) json.member("rewritten", bh::json::Raw{verdict.text});
  json.key("rules").begin_array();
  for (const Look &look : looks) {
    json.begin_object()
        .member("rule", look.rule->id)
        .member("place", look.rule->place.empty() ? "generated" : look.rule->place)
        .member("decision", to_string(look.rule->action))
        .member("found", found_text(look))
        .end_object();
  }
  json.end_array().end_object();
}

}  // namespace

std::expected<std::string, std::string> explain(const RuleSet &set, Judge &judge,
                                                std::string_view call_json) {
  JsonText json;
  if (const char *why = json.parse(call_json))
    return std::unexpected(std::string("the description of the call is invalid: ") + why);
  Described described;
  if (std::string wrong = described.read(json.value()); !wrong.empty())
    return std::unexpected(std::move(wrong));
  std::string out;
  Writer writer(&out);
  writer.begin_object();
  std::vector<Look> looks;
  const Call &call = described.call;
  const bool is_call = call.event == Event::request;
  Verdict verdict;
  if (described.undecided) {
    verdict.reason = "policies do not evaluate requests with this method";
  } else if (set.refuses_large && judge.is_large(set, call.event, call, {})) {
    verdict = judge.refuse_large(set);
  } else {
    verdict = is_call ? judge.decide(set, call, &looks) : judge.judge(set, call, &looks);
  }
  put_answer(writer, "request", verdict, looks);
  if (described.has_result) {
    looks.clear();
    const std::string_view result = described.result;
    Call of_result = call;  // the gateway passes a result without the params of its request
    of_result.arguments = of_result.meta = of_result.extra = {};
    of_result.argument = of_result.context = of_result.definition = {};
    verdict = set.refuses_large && judge.is_large(set, Event::response, of_result, result)
                  ? judge.refuse_large(set)
                  : judge.observe(set, of_result, result, &looks);
    put_answer(writer, "response", verdict, looks);
  }
  writer.end_object();
  return out;
}

}  // namespace bulkhead::rules
