// Implements `policy check`, `policy explain` and `policy test`, which evaluate a profile's rules
// without a gateway.
#include <unistd.h>

#include <cerrno>
#include <expected>
#include <fstream>
#include <sstream>

#include "bulkhead/cpp/json.hpp"
#include "command_line/commands.hpp"
#include "commands/listed_call.hpp"
#include "commands/profile_policies.hpp"
#include "commands/running_policy.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "profile/policy_mark.hpp"
#include "sources/unmatched_names.hpp"

namespace bulkhead::program {
namespace {

using bh::json::append_member;
using bh::json::member_text;
using bh::json::Raw;

constexpr std::size_t max_call_bytes = std::size_t{64} << 20;
constexpr std::size_t max_cases_bytes = std::size_t{64} << 20;

std::expected<std::string, std::string> read_all(const std::string &path, std::size_t most) {
  std::ostringstream text;
  if (path == "-") {
    char buffer[16'384];
    for (ssize_t n = 1; n != 0 && static_cast<std::size_t>(text.tellp()) <= most;) {
      n = ::read(STDIN_FILENO, buffer, sizeof buffer);
      if (n < 0 && errno != EINTR) break;
      if (n > 0) text.write(buffer, n);
    }
  } else {
    std::ifstream file(path, std::ios::binary);
    // Inserting an empty file sets the failbit of `text`.
    const bool empty = file.peek() == std::ifstream::traits_type::eof() && !file.bad();
    if (!file.is_open() || (!empty && !(text << file.rdbuf())))
      return std::unexpected(describe_errno("cannot read " + path, errno));
  }
  if (static_cast<std::size_t>(text.tellp()) > most)
    return std::unexpected(path + " is larger than " + std::to_string(most >> 20) + " MiB");
  return text.str();
}

std::string headline(std::string_view answer) {
  const std::string rule = member_text(answer, "rule"), reason = member_text(answer, "reason");
  std::string out = member_text(answer, "decision");
  if (!rule.empty()) out += " by " + rule;
  if (mcp::member(answer, "warned") == "true") out += ", with a warning";
  if (!reason.empty()) out += ": " + reason;
  return out;
}

void add_answer(std::string *out, std::string_view what, std::string_view answer) {
  if (answer.empty()) return;
  *out += std::string(what) + ": " + printable(headline(answer)) + "\n";
  Table table({"RULE", "DECISION", "FOUND", "PLACE"});
  mcp::for_each_item(mcp::member(answer, "rules"), [&](std::string_view rule) {
    table.add({printable(member_text(rule, "rule")), printable(member_text(rule, "decision")),
               printable(member_text(rule, "found")), printable(member_text(rule, "place"))});
  });
  if (!table.empty()) *out += table.str();
  const std::string_view rewritten = mcp::member(answer, "rewritten");
  if (!rewritten.empty()) *out += "becomes " + printable(std::string(rewritten)) + "\n";
}

// Formats the decision of each policy and the combined decision.
std::string explained_text(std::string_view said) {
  std::string out;
  mcp::for_each_item(mcp::member(said, "policies"), [&text = out](std::string_view one) {
    text += "policy " + printable(member_text(one, "policy")) + " (" +
            printable(member_text(one, "plugin")) + ")";
    const std::string why_not = member_text(one, "not_explained");
    text += why_not.empty() ? "\n" : ": " + printable(why_not) + "\n";
    add_answer(&text, "request", mcp::member(one, "request"));
    add_answer(&text, "response", mcp::member(one, "response"));
    text += "\n";
  });
  if (!out.empty()) out += "combined decision\n";
  add_answer(&out, "request", mcp::member(said, "request"));
  add_answer(&out, "response", mcp::member(said, "response"));
  return out;
}

// Adds notes about the call and `gateways`, a JSON array, to an explanation's JSON object.
std::string with_context(std::string explanation, const std::vector<std::string> &notes,
                         const std::string &gateways) {
  if (!explanation.ends_with('}')) return explanation;
  explanation.pop_back();
  if (!notes.empty()) append_member(&explanation, "notes", notes);
  if (gateways != "[]") append_member(&explanation, "gateways", Raw{gateways});
  return explanation + '}';
}

// Runs the test case on one line of a test file. Returns the reason for its failure, or an empty
// string if it passed.
std::string failure_of(const ProfilePolicies &policies, std::string_view line) {
  if (!mcp::valid_json(line) || !line.starts_with('{')) return "a test case must be a JSON object";
  const std::string_view call = mcp::member(line, "call");
  if (call.empty()) return "\"call\" is missing";
  const auto resolved = resolve_listed_call(call, policies.profile());
  if (!resolved) return resolved.error().text;
  const auto said = policies.explain(resolved->call);
  if (!said) return said.error().text;
  const auto differs = [&](std::string_view event, const char *decision,
                           const char *rule) -> std::string {
    const std::string_view answer = mcp::member(*said, event);
    const std::string wanted = member_text(line, decision), by = member_text(line, rule);
    if (wanted.empty() && by.empty()) return "";
    if (answer.empty()) {
      return "no decision about the response: the call has no \"result\", or its request is "
             "blocked or requires approval";
    }
    // A test case may specify only the last segment of a rule ID.
    const std::string is = member_text(answer, "rule");
    const bool same_rule = by.empty() || is == by || is.ends_with("." + by);
    if ((wanted.empty() || member_text(answer, "decision") == wanted) && same_rule) return "";
    return std::string(event) + ": " + headline(answer) + "; expected " + wanted +
           (by.empty() ? "" : " by " + by);
  };
  if (member_text(line, "expect").empty() && member_text(line, "expect_response").empty())
    return "\"expect\" or \"expect_response\" is missing: use allow, ask, block or rewrite";
  const std::string request = differs("request", "expect", "rule");
  return request.empty() ? differs("response", "expect_response", "response_rule") : request;
}

}  // namespace

int run_policy_check(const Arguments &arguments) {
  ProfilePolicies policies(arguments);
  if (!policies.load()) return exit_failed;
  const std::string where = policies.file().empty() ? "no profile" : tilde(policies.file());
  std::string out;
  for (const auto &policy : policies.all()) {
    out += printable(where + ": " + policy->name() + " accepted the rules") + "\n";
    for (const std::string &warning : policy->warnings()) {
      out += "warning: " + printable(tilde(warning)) + "\n";
    }
  }
  for (const std::string &line : unmatched_names(policies.profile())) {
    out += "warning: " + printable(tilde(line)) + "\n";
  }
  out += describe_running(running_policies(policies.file(), policies.mark()), policies.mark(),
                          has_unexpanded_reference(policies.profile().policies));
  return write_stdout(out) ? exit_ok : exit_failed;
}

int run_policy_explain(const Arguments &arguments) {
  ProfilePolicies policies(arguments);
  if (!policies.load()) return exit_failed;
  const auto text = read_all(arguments.policy_file, max_call_bytes);
  if (!text) return complain(text.error());
  const auto call = resolve_listed_call(*text, policies.profile());
  if (!call) return complain(tilde(arguments.policy_file) + ": " + call.error().text);
  const auto said = policies.explain(call->call);
  if (!said) return complain(tilde(arguments.policy_file) + ": " + said.error().text);
  const auto running = running_policies(policies.file(), policies.mark());
  const bool unset = has_unexpanded_reference(policies.profile().policies);
  std::string out;
  if (arguments.json) {
    const std::string gateways = running_json(running, policies.mark(), unset);
    out = with_context(*said, call->notes, gateways) + '\n';
  } else {
    for (const std::string &note : call->notes) out += "note: " + note + "\n";
    out += explained_text(*said) + describe_running(running, policies.mark(), unset);
  }
  return write_stdout(out) ? exit_ok : exit_failed;
}

int run_policy_test(const Arguments &arguments) {
  ProfilePolicies policies(arguments);
  if (!policies.load()) return exit_failed;
  const auto cases = read_all(arguments.policy_file, max_cases_bytes);
  if (!cases) return complain(cases.error());
  std::istringstream lines(*cases);
  std::string out;
  std::size_t number = 0, passed = 0, failed = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    const std::string_view text = std::string_view(line).substr(first);
    const std::string failure = failure_of(policies, text);
    ++(failure.empty() ? passed : failed);
    if (failure.empty()) continue;
    out += printable(tilde(arguments.policy_file) + ":" + std::to_string(number) + ": " + failure) +
           "\n";
  }
  out += std::to_string(passed) + " passed, " + std::to_string(failed) + " failed\n";
  return write_stdout(out) && failed == 0 ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
