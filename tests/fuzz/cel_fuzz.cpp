// Fuzzes the expression compiler and evaluator. An evaluation must be deterministic and
// finish within its budget.
#include <cstdlib>
#include <string_view>

#include "cel/json_value.hpp"
#include "cel/program.hpp"

using namespace bulkhead::cel;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, std::size_t size) {
  static rapidjson::Document json;
  static const Environment environment = [] {
    json.Parse(R"({"path":"/etc","n":5,"l":[1,"a",null,{"x":2.5}],"m":{"k":true}})");
    Environment made;
    made.declare("a.text", Kind::kString);
    made.declare("a.args", Type::map(Kind::kString, Kind::kDyn));
    made.declare("d", Kind::kDyn);
    made.declare("t", Kind::kTimestamp);
    return made;
  }();
  const auto program = Program::compile({reinterpret_cast<const char *>(data), size}, environment);
  if (!program) return 0;
  Scratch scratch;
  const Value values[] = {Value::string("g\xC3\xA9"), json_value(json), json_value(json["l"]),
                          Value::timestamp({1'700'000'000, 5})};
  const Value first = program->evaluate(values, scratch, 20'000);
  if (first.is_error()) (void)program->explain(first).to_string();
  const Kind kind = first.kind();
  if (program->evaluate(values, scratch, 20'000).kind() != kind) std::abort();
  return 0;
}
