// Finds the members that a checked expression reads without testing that they exist. Reading an
// absent member is an evaluation error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ast.hpp"
#include "environment.hpp"

namespace bulkhead::cel {

struct UnguardedRead {
  std::string member;  // "mcp.request.arguments.options.depth"
  // The tests that would guard it: has() of each part that may be absent, joined by &&.
  std::string test;
};

// A read is guarded if the expression evaluates it only where `has(a.b)` or `"b" in a` is true: in
// another operand of the same &&, behind `!has(a.b) ||`, or in a branch of a conditional. Bit n of
// `may_be_absent`: the variable in slot n itself may be absent. Elements of lists and keys that are
// not constants are not examined. In the order of the source, one for each missing test.
std::vector<UnguardedRead> unguarded_reads(const Ast &ast, const Environment &environment,
                                           std::uint64_t may_be_absent);

}  // namespace bulkhead::cel
