// Compiles and evaluates CEL expressions (Common Expression Language) for rule conditions. A
// program is compiled once and evaluated for each call.
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

// Reusable memory for evaluations, at most 1 MiB. Each thread must use its own Scratch.
using Scratch = Arena;

class Program {
 public:
  // The budget for one evaluation, in steps. Each operation, each list element and every 16 bytes
  // of a string cost one step; context.hpp lists the exact costs.
  static constexpr std::uint64_t kDefaultBudget = 100'000;

  // Compiles an expression. The limits are 64 KiB of source, 16,384 nodes, tree height 200, 100
  // nested brackets and 16 nested macros. A regular expression is limited to 4,096 bytes and 256
  // KiB of memory. If must_be_bool is set, the result type must be bool or dyn. `environment` may
  // be destroyed afterwards.
  static std::expected<Program, Fault> compile(std::string_view source,
                                               const Environment &environment,
                                               bool must_be_bool = false);

  // Evaluates the program. `variables` must be in order of declaration; omitted trailing variables
  // are absent. Returns an error value if the evaluation fails or exceeds the budget. The result
  // may refer to the variables, the program and `scratch`, and is valid until `scratch` is used
  // again. Throws only std::bad_alloc. Does not use the heap if `scratch` has been used before and
  // all intermediate results fit into 4 KiB, except in matches() and string(). Thread-safe if each
  // thread uses its own `scratch`.
  Value evaluate(std::span<const Value> variables, Scratch &scratch,
                 std::uint64_t budget = kDefaultBudget) const;

  // Returns the message for an error value, with its position in the source. The message contains
  // keys and types, but never the values of variables.
  Fault explain(const Value &error) const;

  // Returns the slots that the program reads, as a bit set. Bit 63 represents slot 63 and all
  // higher slots.
  std::uint64_t reads() const;

  // A comparison that must be true for the program to be true: `variable == "text"`, `variable in
  // ["text", ...]` or `variable.startsWith("text")`. An index can skip the program if the
  // comparison is false. The program owns the strings.
  struct Demand {
    std::uint32_t slot = 0;
    std::vector<std::string_view> texts;  // the variable must equal one of these
    bool prefix = false;                  // instead, the variable must start with texts[0]
  };
  std::vector<Demand> demands() const;

  // Returns the places where the program reads a possibly missing member without first testing that
  // it exists (see guards.hpp). `environment` must be the one with which the program was compiled.
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
