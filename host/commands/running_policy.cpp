#include "commands/running_policy.hpp"

#include <charconv>
#include <string_view>

#include "bulkhead/cpp/json.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "service/control_client.hpp"

namespace bulkhead::program {
namespace {

using bh::json::append_member;
using bh::json::member_text;
using bh::json::Raw;

std::uint64_t number_member(std::string_view object, std::string_view name) {
  const std::string_view value = mcp::member(object, name);
  std::uint64_t out = 0;
  std::from_chars(value.data(), value.data() + value.size(), out);
  return out;
}

std::string count_text(std::uint64_t rules) {
  return counted(rules, "rule");
}

// Returns true if the policies may be the same although their digests differ.
bool unknown(const RunningPolicy &one, const PolicyMark &mark, bool unset) {
  return unset && one.mark.rules == mark.rules;
}

}  // namespace

std::vector<RunningPolicy> running_policies(const std::string &file, const PolicyMark &mark) {
  std::vector<RunningPolicy> out;
  const std::string wanted = resolved_path(file);
  for (const FoundGateway &gateway :
       ask_gateways(control_dirs(), "GET", "/status", status_wait_ms)) {
    const std::string_view json = gateway.answer;
    if (!gateway.error.empty() || !mcp::valid_json(json) || !json.starts_with('{')) continue;
    const std::string_view policy = mcp::member(json, "policy");
    if (member_text(json, "config") != wanted || !policy.starts_with('{')) continue;
    RunningPolicy &running = out.emplace_back();
    running.pid = number_member(json, "pid");
    running.mark.generation = number_member(policy, "generation");
    running.mark.rules = static_cast<std::uint32_t>(number_member(policy, "rules"));
    running.mark.digest = member_text(policy, "digest");
    running.same = running.mark.digest == mark.digest;
  }
  return out;
}

std::string describe_running(const std::vector<RunningPolicy> &running, const PolicyMark &mark,
                             bool unset) {
  std::string out;
  for (const RunningPolicy &one : running) {
    out += "the running gateway (pid " + std::to_string(one.pid) + ") ";
    if (one.same) {
      out += "has these rules in force";
    } else if (unknown(one, mark, unset)) {
      out +=
          "cannot be compared with the files: they use an environment variable that is not set "
          "here. Set it, or run `bulkhead reload` to apply the rules in the files";
    } else {
      out += "has DIFFERENT rules in force: " + count_text(one.mark.rules) +
             ", while the files have " + count_text(mark.rules) +
             ". Run `bulkhead reload` to apply the rules in the files";
    }
    out += "\n";
  }
  return out;
}

std::string running_json(const std::vector<RunningPolicy> &running, const PolicyMark &mark,
                         bool unset) {
  std::string out = "[";
  for (const RunningPolicy &one : running) {
    std::string item = "{";
    append_member(&item, "pid", one.pid);
    append_member(&item, "generation", one.mark.generation);
    append_member(&item, "rules", one.mark.rules);
    append_member(&item, "digest", one.mark.digest);
    append_member(&item, "same",
                  Raw{one.same                    ? "true"
                      : unknown(one, mark, unset) ? "null"
                                                  : "false"});
    out += (out.size() > 1 ? "," : "") + item + "}";
  }
  return out + "]";
}

}  // namespace bulkhead::program
