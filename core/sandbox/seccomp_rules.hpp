// Defines the rules that make up a system call list, and assembles such a list into a filter
// program.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <map>
#include <vector>

namespace bulkhead::seccomp {

// The condition (argument & mask) == value, or != if `unequal` is set. Only the low 32 bits are
// compared. This is sufficient for arguments that are ints in the kernel or have their flags in
// these bits, but not for pointers: the upper half of a pointer is not checked.
struct Condition {
  unsigned argument = 0;
  std::uint32_t mask = ~0U, value = 0;
  bool unequal = false;
};
using AllOf = std::vector<Condition>;

enum class Answer : std::uint8_t { allow, refuse, unknown };  // refuse: EPERM, unknown: ENOSYS

struct Verdict {
  Answer answer = Answer::allow;
  // If not empty, the call is allowed only if all conditions of one element hold.
  std::vector<AllOf> one_of;
};

// Verdicts by call number. `otherwise` applies to unlisted numbers up to `last_known`. Higher
// numbers are treated as unknown.
struct CallList {
  std::map<std::uint32_t, Verdict> calls;
  Answer otherwise = Answer::refuse;
  std::uint32_t last_known = 0;

  void allow(std::initializer_list<long> numbers);
  void refuse(std::initializer_list<long> numbers);
  void allow_if(long number, std::vector<AllOf> one_of);
};

std::vector<sock_filter> assemble(const CallList &list);

}  // namespace bulkhead::seccomp
