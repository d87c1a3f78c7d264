// Finds members that a checked expression reads without a preceding test that they exist. Reading a
// missing member is an evaluation error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ast.hpp"
#include "environment.hpp"

namespace bulkhead::cel {

struct UnguardedRead {
  std::string member;  // "mcp.request.arguments.options.depth"
  // The test that would guard the read: has() of each part that may be missing, joined by &&.
  std::string test;
};

// Returns unguarded reads in source order, one for each missing test. A read is guarded if it is
// evaluated only where `has(a.b)` or `"b" in a` is true. The guard may be another operand of the
// same &&, a preceding `!has(a.b) ||`, or the condition of a conditional. Bit n of `may_be_absent`
// is set if the variable in slot n may be absent. List elements and non-constant keys are not
// examined.
std::vector<UnguardedRead> unguarded_reads(const Ast &ast, const Environment &environment,
                                           std::uint64_t may_be_absent);

}  // namespace bulkhead::cel
