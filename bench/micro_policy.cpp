// Measures a decision of policy-rules with 10, 100 and 1,000 rules about a call with 1 KB of
// arguments. Prints the medians in nanoseconds: without reading the arguments, with reading them,
// for parsing them alone, and with rules that no index can skip.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "judge.hpp"
#include "rule_set.hpp"

using namespace bulkhead::rules;

namespace {

constexpr int rounds = 4'000, calls_per_round = 8;

// Returns a typical rule. Each rule applies to one tool, and every fourth rule reads the arguments.
std::string indexed(int i) {
  const std::string n = std::to_string(i);
  std::string text = "mcp.request.server_name == 'server" + std::to_string(i % 20) +
                     "' && mcp.request.tool_name == 'tool" + n + "'";
  if (i % 4 == 0) text += " && mcp.request.arguments.path.startsWith('/etc/')";
  return text;
}
std::string not_indexed(int i) {
  return "mcp.request.tool_name.startsWith('prefix" + std::to_string(i) + "')";
}

RuleSet rules(int count, std::string (*condition)(int)) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    all += (i > 0 ? ",\"r" : "\"r") + std::to_string(i) +
           R"(":{"on":"mcp.request","decision":"block",)" + R"("priority":)" +
           std::to_string(i % 999 + 1) + R"(,"if":")" + condition(i) + "\"}";
  }
  auto set = RuleSet::load(R"({"profile_rules":[{"layer":"file","file":"b.toml","lines":{},)"
                           R"("sections":{"security":{"rules":{"mcp":{)" +
                           all + "}}}}}]}");
  if (set) return std::move(*set);
  std::fprintf(stderr, "%s\n", set.error().front().c_str());
  std::exit(1);
}

std::string arguments_of(std::size_t bytes) {
  std::string out = R"({"path":"/home/u/notes.txt","line":17,"tags":["a","b","c"],"text":")";
  return out + std::string(bytes - out.size() - 2, 'x') + "\"}";
}

Call call_of_tool(std::string_view server, std::string_view tool, std::string_view arguments) {
  Call call;
  call.method = "tools/call";
  call.server = server;
  call.name = tool;
  call.arguments = arguments;
  call.principal = "anna";
  return call;
}

template <class F>
double median_ns(F work) {
  std::vector<double> spent;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls_per_round; ++i) work();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    spent.push_back(time.count() / calls_per_round);
  }
  std::nth_element(spent.begin(), spent.begin() + rounds / 2, spent.end());
  return spent[rounds / 2];
}

}  // namespace

int main() {
  const std::string arguments = arguments_of(1024);
  Judge judge({[] { return std::uint64_t{1}; }, [] { return std::uint64_t{1}; }});
  const auto decide = [&](const RuleSet &set, const Call &call) {
    return median_ns([&] {
      if (judge.decide(set, call).kind != BH_VERDICT_ALLOW) std::exit(1);
    });
  };
  std::printf("%6s %12s %12s %14s\n", "rules", "names only", "arguments", "not indexed");
  for (const int count : {10, 100, 1'000}) {
    const RuleSet set = rules(count, indexed);
    const RuleSet flat = rules(count, not_indexed);
    const int last = (count - 1) / 4 * 4;  // a rule that reads the arguments
    const std::string server = "server" + std::to_string(last % 20);
    const std::string tool = "tool" + std::to_string(last);
    const Call names = call_of_tool(server, "other", arguments);
    const Call looks = call_of_tool(server, tool, arguments);
    std::printf("%6d %9.0f ns %9.0f ns %11.0f ns\n", count, decide(set, names), decide(set, looks),
                decide(flat, names));
  }
  JsonText text;
  std::printf("parsing %zu bytes of arguments: %.0f ns\n", arguments.size(), median_ns([&] {
                if (text.parse(arguments) != nullptr) std::exit(1);
              }));
}
