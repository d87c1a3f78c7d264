// Measures the evaluation of a typical condition. Prints the best of several rounds in nanoseconds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "cel/json_value.hpp"
#include "cel/program.hpp"

using namespace bulkhead::cel;

int main() {
  Environment environment;
  environment.declare("mcp.request.server_name", Kind::kString);
  environment.declare("mcp.request.tool_name", Kind::kString);
  environment.declare("mcp.request.arguments", Type::map(Kind::kString, Kind::kDyn));
  rapidjson::Document json;
  json.Parse(R"({"owner":"a","path":"/etc/passwd","count":5,"tags":["x","y","z"]})");
  const Value values[] = {Value::string("github"), Value::string("delete_repo"), json_value(json)};
  constexpr const char *conditions[] = {
      R"(mcp.request.server_name == "github" && mcp.request.tool_name.startsWith("delete_"))",
      R"(mcp.request.tool_name in ["a", "b", "c", "delete_repo"])",
      R"(mcp.request.arguments.path.startsWith("/etc/") && mcp.request.arguments.count > 3)",
      R"(mcp.request.arguments.path.matches("^/(etc|root)/"))",
      R"(mcp.request.arguments.tags.exists(t, t == "z"))",
  };
  for (const char *condition : conditions) {
    const auto program = Program::compile(condition, environment, true);
    if (!program) std::exit(1);
    Scratch scratch;
    double best = 1e30;
    for (int round = 0; round < 10; ++round) {
      constexpr int repeat = 100'000;
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < repeat; ++i) {
        if (!program->evaluate(values, scratch).is_true()) std::exit(1);
      }
      const std::chrono::duration<double, std::nano> spent =
          std::chrono::steady_clock::now() - start;
      best = std::min(best, spent.count() / repeat);
    }
    std::printf("%8.1f ns  %s\n", best, condition);
  }
}
