// Finds members that an expression reads without first testing that they exist. Reading a missing
// member is an evaluation error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ast.hpp"
#include "environment.hpp"

namespace bulkhead::cel {

struct UnguardedRead {
  std::string member;  // such as "mcp.request.arguments.options.depth"
  // The test to add. It consists of has() for each part of the path that may be missing, joined
  // with &&.
  std::string test;
};

// Returns the unguarded reads in source order. Reads that need the same test are returned only
// once. A read is guarded if it is evaluated only where `has(a.b)` or `"b" in a` is true. The test
// may be another operand of the same &&, another operand `!has(a.b)` of the same ||, or the
// condition of a ?: expression. Bit n of `may_be_absent` is set if the variable in slot n may be
// absent. List elements and computed keys are not checked.
std::vector<UnguardedRead> unguarded_reads(const Ast &ast, const Environment &environment,
                                           std::uint64_t may_be_absent);

}  // namespace bulkhead::cel
