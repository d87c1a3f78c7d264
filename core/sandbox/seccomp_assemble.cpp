#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <initializer_list>

#include "sandbox/seccomp_rules.hpp"

namespace bulkhead::seccomp {
namespace {

using Code = std::vector<sock_filter>;

#if defined(__x86_64__)
constexpr std::uint32_t our_architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t our_architecture = AUDIT_ARCH_AARCH64;
#else
#error "the AUDIT_ARCH of this platform is not defined here"
#endif

sock_filter plain(std::uint16_t code, std::uint32_t k) {
  return {code, 0, 0, k};
}
sock_filter jump(std::uint16_t test, std::uint32_t k, std::size_t yes, std::size_t no) {
  return {static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), static_cast<std::uint8_t>(yes),
          static_cast<std::uint8_t>(no), k};
}
sock_filter load(std::size_t offset) {
  return plain(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
sock_filter answer(Answer a) {
  switch (a) {
    case Answer::allow:
      return plain(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    case Answer::unknown:
      return plain(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    case Answer::refuse:
      break;
  }
  return plain(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
}

static_assert(std::endian::native == std::endian::little);  // see Condition::high

// Adds code that allows the call if all conditions hold. Otherwise, execution continues after the
// added code.
void add_all_of(Code &code, const AllOf &all) {
  Code body;
  for (auto condition = all.rbegin(); condition != all.rend(); ++condition) {
    // The code is generated from the last condition to the first, so the distance of each jump to
    // the end is already known.
    const std::size_t past = body.size() + 1;
    const std::size_t half = condition->high ? sizeof(std::uint32_t) : 0;
    Code one{
        load(offsetof(seccomp_data, args) + sizeof(std::uint64_t) * condition->argument + half)};
    if (condition->mask != ~0U) one.push_back(plain(BPF_ALU | BPF_AND | BPF_K, condition->mask));
    one.push_back(condition->unequal ? jump(BPF_JEQ, condition->value, past, 0)
                                     : jump(BPF_JEQ, condition->value, 0, past));
    body.insert(body.begin(), one.begin(), one.end());
  }
  code.insert(code.end(), body.begin(), body.end());
  code.push_back(answer(Answer::allow));
}

Code leaf(const Verdict &verdict) {
  Code code;
  for (const AllOf &all : verdict.one_of) add_all_of(code, all);
  code.push_back(answer(verdict.one_of.empty() ? verdict.answer : Answer::refuse));
  return code;
}

// The range of call numbers from `first` up to the next segment.
struct Segment {
  std::uint32_t first;
  Verdict verdict;
};

std::vector<Segment> segments(const CallList &list) {
  std::vector<Segment> out{{0, {list.otherwise, {}}}};
  const auto add = [&](std::uint32_t first, const Verdict &verdict) {
    if (out.back().first == first) {
      out.back().verdict = verdict;
    } else {
      out.push_back({first, verdict});
    }
    // Merges adjacent segments with the same verdict.
    if (out.size() < 2) return;
    const Verdict &before = out[out.size() - 2].verdict;
    if (before.answer == verdict.answer && before.one_of.empty() && verdict.one_of.empty()) {
      out.pop_back();
    }
  };
  for (const auto &[number, verdict] : list.calls) {
    add(number, verdict);
    add(number + 1, {number < list.last_known ? list.otherwise : Answer::unknown, {}});
  }
  if (out.back().first <= list.last_known) add(list.last_known + 1, {Answer::unknown, {}});
  return out;
}

Code tree(const std::vector<Segment> &all, std::size_t from, std::size_t to) {
  if (to - from == 1) return leaf(all[from].verdict);
  const std::size_t middle = from + (to - from) / 2;
  const Code low = tree(all, from, middle), high = tree(all, middle, to);
  // A conditional jump can skip at most 255 instructions, so an unconditional jump skips the low
  // half.
  Code code{jump(BPF_JGE, all[middle].first, 0, 1),
            plain(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(low.size()))};
  code.insert(code.end(), low.begin(), low.end());
  code.insert(code.end(), high.begin(), high.end());
  return code;
}

}  // namespace

void CallList::allow(std::initializer_list<long> numbers) {
  for (const long number : numbers) calls[static_cast<std::uint32_t>(number)] = {Answer::allow, {}};
}

void CallList::refuse(std::initializer_list<long> numbers) {
  for (const long number : numbers) {
    calls[static_cast<std::uint32_t>(number)] = {Answer::refuse, {}};
  }
}

void CallList::allow_if(long number, std::vector<AllOf> one_of) {
  calls[static_cast<std::uint32_t>(number)] = {Answer::allow, std::move(one_of)};
}

std::vector<sock_filter> assemble(const CallList &list) {
  Code code{
      load(offsetof(seccomp_data, arch)),
      jump(BPF_JEQ, our_architecture, 1, 0),
      plain(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      load(offsetof(seccomp_data, nr)),
  };
#if defined(__x86_64__)
  // Calls through the x32 ABI have the same architecture value, but their numbers are 0x40000000
  // and above.
  code.push_back(jump(BPF_JGE, 0x4000'0000U, 0, 1));
  code.push_back(plain(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
#endif
  const auto all = segments(list);
  const Code search = tree(all, 0, all.size());
  code.insert(code.end(), search.begin(), search.end());
  return code;
}

}  // namespace bulkhead::seccomp
