// The Common Expression Language for rule conditions. A program is compiled and checked once, and
// evaluated for each call.
//
//   Environment environment;
//   environment.declare("mcp.request.tool_name", Kind::kString);           // slot 0
//   environment.declare("mcp.request.arguments", Type::map(Kind::kString, Kind::kDyn));
//   auto program = Program::compile("mcp.request.tool_name.startsWith('delete_')", environment);
//   if (!program) report(program.error().to_string());                     // "1:22: ..."
//   Scratch scratch;
//   const Value values[] = {Value::string(name), json_value(arguments)};
//   const Value result = program->evaluate(values, scratch);
//   if (result.is_true()) ...
//
// docs/cel.md describes the supported language.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ast.hpp"
#include "environment.hpp"
#include "evaluator.hpp"
#include "fault.hpp"
#include "guards.hpp"
#include "value.hpp"

namespace bulkhead::cel {

// Memory that evaluations reuse, at most 1 MiB. Each evaluating thread requires its own Scratch.
using Scratch = Arena;

class Program {
 public:
  // Each operation, each list element, and each 16 bytes of a string cost one step.
  static constexpr std::uint64_t kDefaultBudget = 100'000;

  // Limits: 64 KiB of text, 16384 nodes, height 200, 100 nested brackets and 16 nested macros. A
  // regular expression is limited to 4096 bytes and 256 KiB of memory. The environment is not
  // needed after compilation. If must_be_bool is set, a result type other than bool or dyn is an
  // error.
  static std::expected<Program, Fault> compile(std::string_view source,
                                               const Environment &environment,
                                               bool must_be_bool = false);

  // `variables` are in declaration order and are read in place; missing trailing variables are
  // absent. If the evaluation fails or exceeds the budget, an error value is returned. The result
  // may refer to the variables, the program and the scratch memory. It is valid until the next
  // evaluation with the same scratch memory. Does not throw. Does not allocate if the results fit
  // into 4 KiB, except for matches(). Several threads may evaluate the same program concurrently.
  Value evaluate(std::span<const Value> variables, Scratch &scratch,
                 std::uint64_t budget = kDefaultBudget) const;

  // Returns the message for an error value, with the error's position in the source. The message
  // contains keys and types, but no values.
  Fault explain(const Value &error) const;

  // Bit n is set if the program reads slot n. Slots above 63 are counted as 63.
  std::uint64_t reads() const;

  // A test that must be true for the program to be true: `variable == "text"`, `variable in
  // ["text", ...]` or `variable.startsWith("text")`. If the variable is any other string, the
  // program is false, so an index need not evaluate it. The program owns the strings.
  struct Demand {
    std::uint32_t slot = 0;
    std::vector<std::string_view> texts;  // the value must equal one of these strings
    bool prefix = false;                  // the value must begin with the only string
  };
  std::vector<Demand> demands() const;

  // Returns members that may be missing and are read without a test; see guards.hpp. `environment`
  // must be the environment used for compilation.
  std::vector<UnguardedRead> unguarded(const Environment &environment,
                                       std::uint64_t may_be_absent) const {
    return unguarded_reads(ast_, environment, may_be_absent);
  }

  const Type &type() const { return type_; }
  const std::string &source() const { return source_; }

 private:
  Program() = default;
  std::string text_of(const Value &error) const;

  std::string source_;
  Ast ast_;
  Regexes regexes_;
  Type type_;
};

}  // namespace bulkhead::cel
