// Runs the CEL test cases in tests/cel. The cases in tests/cel/spec are from the public CEL
// conformance suite. Each case is a line `EXPRESSION => EXPECTED`, where EXPECTED is one of:
//   an expression with the same type and value;
//   !load: rejected at load;
//   !error: fails at evaluation;
//   !unsupported: not supported (docs/cel.md), so it must be rejected at load;
//   !differs: the result intentionally differs from the conformance suite (docs/cel.md).
// A line `name = EXPRESSION` binds a variable of type dyn for the following lines. A line `---`
// removes all variables. A line that starts with `#` is a comment.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cel/program.hpp"

using namespace bulkhead::cel;

namespace {

struct Bindings {
  Environment environment;
  std::vector<Value> values;
  std::deque<Program> programs;  // own the data of the bound values
  std::deque<Scratch> memory;
};

struct Outcome {
  enum { kValue, kLoadFault, kError } what = kValue;
  Value value;
  std::string text;  // error message from compilation or evaluation
};

Outcome evaluate(const std::string &source, Bindings &bindings) {
  auto program = Program::compile(source, bindings.environment);
  if (!program) return {Outcome::kLoadFault, {}, program.error().to_string()};
  bindings.programs.push_back(std::move(*program));
  const Program &kept = bindings.programs.back();
  const Value value = kept.evaluate(bindings.values, bindings.memory.emplace_back());
  if (value.is_error()) return {Outcome::kError, value, kept.explain(value).to_string()};
  return {Outcome::kValue, value, {}};
}

bool same(const Value &a, const Value &b) {
  if (a.kind() != b.kind()) return false;
  const bool nan = a.is(Kind::kDouble) && std::isnan(a.as_double()) && std::isnan(b.as_double());
  Scratch memory;
  Context context(memory, 1'000'000, {});
  return nan || equal(context, a, b);
}

// Evaluates `source` and compares the result with `expected`. Returns a description of the
// difference, or an empty string if there is none.
std::string judge(const std::string &source, const std::string &expected, Bindings &bindings) {
  const Outcome outcome = evaluate(source, bindings);
  if (expected == "!load" || expected == "!unsupported") {
    return outcome.what == Outcome::kLoadFault ? "" : "was not rejected at load";
  }
  if (expected == "!differs") return outcome.what == Outcome::kLoadFault ? outcome.text : "";
  if (expected == "!error") {
    if (outcome.what == Outcome::kLoadFault) return "rejected at load: " + outcome.text;
    return outcome.what == Outcome::kError ? "" : "was not an error";
  }
  if (outcome.what != Outcome::kValue) return outcome.text;
  const Outcome wanted = evaluate(expected, bindings);
  if (wanted.what != Outcome::kValue) return "expected value: " + wanted.text;
  return same(outcome.value, wanted.value) ? "" : "another value";
}

}  // namespace

TEST_CASE("all conformance cases have the expected result") {
  unsigned passed = 0;
  unsigned supported = 0;
  unsigned all = 0;
  for (const auto &file : std::filesystem::recursive_directory_iterator(CEL_CASES)) {
    if (file.path().extension() != ".txt") continue;
    std::ifstream in(file.path());
    Bindings bindings;
    std::string line;
    for (unsigned number = 1; std::getline(in, line); ++number) {
      if (line.empty() || line.starts_with('#')) continue;
      if (line == "---") {
        bindings = Bindings();
        continue;
      }
      const std::size_t arrow = line.find(" => ");
      if (arrow == std::string::npos) {
        const std::size_t sign = line.find(" = ");
        REQUIRE(sign != std::string::npos);
        const Outcome outcome = evaluate(line.substr(sign + 3), bindings);
        INFO(line << ": " << outcome.text);
        REQUIRE(outcome.what == Outcome::kValue);
        bindings.environment.declare(line.substr(0, sign), Kind::kDyn);
        bindings.values.push_back(outcome.value);
        continue;
      }
      const std::string expected = line.substr(arrow + 4);
      const std::string wrong = judge(line.substr(0, arrow), expected, bindings);
      ++all;
      const bool ours = expected != "!unsupported" && expected != "!differs";
      if (ours) ++supported;
      if (wrong.empty() && ours) ++passed;
      INFO(file.path().filename().string() << ":" << number << ": " << line << "\n" << wrong);
      CHECK(wrong.empty());
    }
  }
  std::printf("CEL cases: %u passed / %u supported / %u all\n", passed, supported, all);
  CHECK(supported > 1100);
}
