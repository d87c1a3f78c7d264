// Fuzzes the loading and evaluation of rules. NUL bytes separate the configuration, the arguments,
// the result and the description of a call. If the rules are accepted, all functions of the policy
// are called: decide, observe, filter, evaluation of events and explain. Rewritten texts and
// explanations must be valid JSON.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "explain.hpp"
#include "judge.hpp"
#include "rule_set.hpp"

using namespace bulkhead::rules;

namespace {

std::string_view part(std::string_view *rest) {
  const std::size_t end = rest->find('\0');
  const std::string_view out = rest->substr(0, end);
  *rest = end == std::string_view::npos ? std::string_view{} : rest->substr(end + 1);
  return out;
}

void check(const Verdict &verdict) {
  if (verdict.kind != BH_VERDICT_REWRITE) return;
  JsonText again;
  const char *fault = again.parse(verdict.text);
  // A text that no rule reads may have duplicate members. The gate rejects them in arguments.
  if (fault != nullptr && std::string_view(fault) == "not valid JSON") std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char *>(data), size);
  const std::string_view config = part(&rest), arguments = part(&rest), result = part(&rest),
                         described = part(&rest);
  const auto set = RuleSet::load(config);
  if (!set) return 0;
  Judge judge(
      {[] { return std::uint64_t{1'000}; }, [] { return std::uint64_t{1'700'000'000'000}; }});
  Call call;
  call.method = "tools/call";
  call.server = "s";
  call.name = "t";
  call.principal = "p";
  call.arguments = arguments;
  check(judge.decide(*set, call));
  check(judge.observe(*set, call, result));
  static_cast<void>(judge.shows(*set, call));
  for (const Event event : {Event::input_request, Event::input_response, Event::notification}) {
    call.event = event;
    call.method = event == Event::notification ? "notifications/message" : "elicitation/create";
    call.arguments = result;
    const Verdict verdict = judge.judge(*set, call);
    if (verdict.kind != BH_VERDICT_ALLOW && verdict.kind != BH_VERDICT_BLOCK) std::abort();
  }
  // Whether or not the state is accepted, the policy still works.
  static_cast<void>(judge.import_state(*set, result));
  call.event = Event::request;
  call.method = "tools/call";
  call.arguments = arguments;
  check(judge.decide(*set, call));
  static_cast<void>(judge.export_state(std::size_t{1} << 20));
  if (const auto said = explain(*set, judge, described); said && JsonText().parse(*said)) {
    std::abort();
  }
  return 0;
}
