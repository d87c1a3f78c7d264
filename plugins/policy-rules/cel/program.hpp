// The Common Expression Language for conditions of rules: compiled and checked once, evaluated for
// each call.
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
// docs/cel.md lists the supported language.
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

// Memory of evaluations, which is reused; one per evaluating thread. At most 1 MiB.
using Scratch = Arena;

class Program {
 public:
  // Steps: one per operation, per list element, and per sixteen bytes of a string.
  static constexpr std::uint64_t kDefaultBudget = 100'000;

  // Limits: 64 KiB of text, 16384 nodes, height 200, 100 nested brackets, 16 nested macros, 4096
  // bytes and 256 KiB for a regular expression. The environment is not needed afterwards. If
  // must_be_bool is set, a result other than bool (or dyn) is a fault.
  static std::expected<Program, Fault> compile(std::string_view source,
                                               const Environment &environment,
                                               bool must_be_bool = false);

  // `variables` in order of declaration, read in place; missing trailing ones are absent. A failed
  // evaluation, or one that exceeds the budget, returns an error value. The result may point into
  // the variables, the program and the scratch memory; it is valid until the next evaluation with
  // that memory. Does not throw, and does not allocate if the results fit into 4 KiB (except for
  // matches()). Several threads may evaluate the same program concurrently.
  Value evaluate(std::span<const Value> variables, Scratch &scratch,
                 std::uint64_t budget = kDefaultBudget) const;

  // The text of an error value, with its position in the source. It names keys and kinds and
  // contains no other part of the values.
  Fault explain(const Value &error) const;

  // Bit n: the program reads slot n (slots from 64 on count as 63).
  std::uint64_t reads() const;

  // `variable == "text"`, `variable in ["text", ...]` and `variable.startsWith("text")` in
  // positions where the program is false unless they are true. An index can conclude without
  // evaluation that the program is false for a call whose (present, string) variable has another
  // value. The texts are owned by the program.
  struct Demand {
    std::uint32_t slot = 0;
    std::vector<std::string_view> texts;  // the value must be one of them,
    bool prefix = false;                  // or begin with the only one
  };
  std::vector<Demand> demands() const;

  // Members that may be absent and are read without a test; see guards.hpp. `environment`: the one
  // that the program was compiled with.
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
