#include "program.hpp"

#include "checker.hpp"
#include "parser.hpp"

namespace bulkhead::cel {

std::expected<Program, Fault> Program::compile(std::string_view source,
                                               const Environment &environment, bool must_be_bool) {
  Program program;
  if (auto fault = parse(source, &program.ast_)) return std::unexpected(std::move(*fault));
  auto type = check(source, environment, &program.ast_, &program.regexes_);
  if (!type) return std::unexpected(std::move(type.error()));
  if (must_be_bool && !type->is_dyn() && !type->is(Kind::kBool)) {
    return std::unexpected(
        fault_at(source, 0, "a condition is a bool, this is " + type->to_string()));
  }
  program.source_ = source;
  program.type_ = std::move(*type);
  return program;
}

Value Program::evaluate(std::span<const Value> variables, Scratch &scratch,
                        std::uint64_t budget) const {
  scratch.reset();
  Context context(scratch, budget, variables);
  Value value = Evaluator(ast_, regexes_, context).run(ast_.root);
  if (!context.stopped()) return value;
  Value stopped = Value::error(context.why());
  stopped.set_error_place(value.is_error() ? value.error_place() : 0);
  return stopped;
}

Fault Program::explain(const Value &error) const {
  const std::uint32_t place = error.error_place();
  return fault_at(source_, place == 0 ? 0 : place - 1,
                  error.is_error() ? error.error_text() : "no error");
}

}  // namespace bulkhead::cel
