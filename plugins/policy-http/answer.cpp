#include "policy-http/answer.hpp"

#include <bulkhead/cpp/text.hpp>

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <vector>

#include "egress-kit/config_values.hpp"

namespace policy_http {
namespace {

using Value = rapidjson::Value;

using egress::text_of;

const Value *find(const Value &object, const char *name) {
  const auto at = object.FindMember(name);
  return at == object.MemberEnd() || at->value.IsNull() ? nullptr : &at->value;
}

bool has_duplicates(const Value &object) {
  std::vector<std::string_view> names;
  for (const auto &each : object.GetObject()) names.push_back(text_of(each.name));
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) != names.end();
}

std::string read_text(const Value &object, const char *name, std::size_t max, std::string *out) {
  const Value *value = find(object, name);
  if (value == nullptr) return {};
  if (!value->IsString()) return std::string(name) + " is not a string";
  *out = bh::one_line(text_of(*value), max);  // it is shown in logs, clients and terminals
  return {};
}

std::string read_rewrite(const Value &object, bool response, Answer *out) {
  const Value *target = find(object, "rewrite_target");
  const Value *value = find(object, "rewrite_value");
  const std::string_view wanted = response ? "result" : "arguments";
  if (target == nullptr || !target->IsString() || text_of(*target) != wanted) {
    return "rewrite_target can only be \"" + std::string(wanted) + "\" here";
  }
  if (value == nullptr || !value->IsObject()) return "rewrite_value is not an object";
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> writer(text);
  value->Accept(writer);
  out->rewritten.assign(text.GetString(), text.GetSize());
  return {};
}

std::string read_verdict(const Value &object, bool response, Answer *out) {
  const Value *decision = find(object, "decision");
  if (decision == nullptr || !decision->IsString()) return "the member \"decision\" is missing";
  const std::string_view name = text_of(*decision);
  if (name == "allow") {
    out->verdict = BH_VERDICT_ALLOW;
  } else if (name == "ask") {
    out->verdict = BH_VERDICT_ASK;
  } else if (name == "block") {
    out->verdict = BH_VERDICT_BLOCK;
  } else if (name == "rewrite") {
    out->verdict = BH_VERDICT_REWRITE;
    return read_rewrite(object, response, out);
  } else {
    return "decision must be allow, ask, block or rewrite";
  }
  return {};
}

std::string read_hook(const Value &object, const Question &question, Answer *out) {
  if (has_duplicates(object)) return "duplicate member";
  if (const Value *id = find(object, "decision_id");
      id != nullptr && (!id->IsString() || text_of(*id) != question.decision_id)) {
    return "decision_id does not match the request";
  }
  if (const Value *version = find(object, "spec_version");
      version != nullptr && (!version->IsString() || text_of(*version) != spec_version)) {
    return "spec_version must be " + std::string(spec_version);
  }
  if (const Value *redactions = find(object, "redactions");
      redactions != nullptr && !(redactions->IsArray() && redactions->Empty())) {
    return "redactions are not supported; use decision \"rewrite\"";
  }
  if (std::string bad = read_verdict(object, question.response, out); !bad.empty()) return bad;
  if (std::string bad = read_text(object, "rule_id", Answer::max_rule, &out->rule); !bad.empty())
    return bad;
  if (std::string bad = read_text(object, "reason", Answer::max_reason, &out->reason); !bad.empty())
    return bad;
  if (const Value *ttl = find(object, "ttl_ms")) {
    if (!ttl->IsUint64()) return "ttl_ms must be a number of milliseconds";
    out->ttl_ms = ttl->GetUint64();
  }
  return {};
}

// Reads the result of an OPA query: true, false, or an object in the format of a hook response. A
// missing (undefined) result is an error.
std::string read_opa(const Value &root, const Question &question, Answer *out) {
  if (has_duplicates(root)) return "duplicate member";
  const Value *result = find(root, "result");
  if (result == nullptr) return "the policy returned no result (undefined)";
  if (result->IsBool()) {
    out->verdict = result->GetBool() ? BH_VERDICT_ALLOW : BH_VERDICT_BLOCK;
    return {};
  }
  if (!result->IsObject()) return "result must be true, false or an object";
  return read_hook(*result, question, out);
}

// Returns true if arrays and objects are nested more than 64 levels deep. For invalid JSON, the
// result is unspecified.
bool is_deep(std::string_view text) {
  constexpr int most = 64;
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_text = !in_text;
    if (in_text && c == '\\') ++i;
    if (in_text) continue;
    if ((c == '[' || c == '{') && ++depth > most) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

}  // namespace

std::string read_answer(Style style, const Question &question, std::string_view body, Answer *out) {
  if (is_deep(body)) return "nested too deeply";
  rapidjson::Document root;
  root.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(body.data(),
                                                                                     body.size());
  if (root.HasParseError()) return "not JSON";
  if (!root.IsObject()) return "not an object";
  if (style == Style::opa) return read_opa(root, question, out);
  return read_hook(root, question, out);
}

}  // namespace policy_http
