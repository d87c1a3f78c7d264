// The Common Expression Language, for conditions of rules: compiled and checked once, evaluated
// often.
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
// What is supported is listed in docs/cel.md.
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
#include "value.hpp"

namespace bulkhead::cel {

// Memory of evaluations, used again and again; one for each thread that evaluates. At most 1 MiB.
using Scratch = Arena;

class Program {
 public:
  // Steps: each operation is one, an element of a list, a sixteenth of a string's bytes too.
  static constexpr std::uint64_t kDefaultBudget = 100'000;

  // Bounds: text 64 KiB, 16384 nodes, height 200, 100 brackets in each other, 16 macros in each
  // other, a regular expression 4096 bytes and 256 KiB. The environment is not needed afterwards.
  // With the flag, the result must be a bool (or dyn), else that is a fault.
  static std::expected<Program, Fault> compile(std::string_view source,
                                               const Environment &environment,
                                               bool must_be_bool = false);

  // `variables` in the order of declaration, read in place; one that is missing at the end counts
  // as absent. An evaluation that goes wrong, or costs more than the budget, is an error value. The
  // result may point into the variables, the program and the scratch memory, and is good until the
  // next evaluation with that memory. Does not throw and, with results that fit into 4 KiB, does
  // not allocate (matches() apart). The program itself may be used by several threads at once.
  Value evaluate(std::span<const Value> variables, Scratch &scratch,
                 std::uint64_t budget = kDefaultBudget) const;

  // An error value in words, with its place in the source. It names keys and kinds, and says
  // nothing else of the values.
  Fault explain(const Value &error) const;

  // Bit n: the value in slot n is looked at (slots from 64 on count as 63).
  std::uint64_t reads() const;

  // `variable == "text"`, `variable in ["text", ...]` and `variable.startsWith("text")` that stand
  // where the whole is false unless they are true: an index needs no evaluation to know that the
  // program gives false for a call whose (present, string) variable has another value. The texts
  // live as long as the program.
  struct Demand {
    std::uint32_t slot = 0;
    std::vector<std::string_view> texts;  // one of them,
    bool prefix = false;                  // or what begins with the only one
  };
  std::vector<Demand> demands() const;

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
