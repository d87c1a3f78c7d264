// Provides memory and a step budget for one evaluation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "value.hpp"

namespace bulkhead::cel {

// A memory arena whose allocations are all released together. Keeps its first block when it is
// reset, so ordinary evaluations do not allocate from the heap. Not thread-safe.
class Arena {
 public:
  explicit Arena(std::size_t max_bytes = std::size_t{1} << 20) : max_bytes_(max_bytes) {}

  // Returns memory that is suitably aligned for any Value, or nullptr if the limit is reached.
  void *allocate(std::size_t bytes);
  void reset();  // releases all allocations

 private:
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size;
  };
  std::vector<Block> blocks_;
  std::size_t used_in_last_ = 0;
  std::size_t total_ = 0;
  std::size_t max_bytes_;
};

// Costs in steps. n and m are string lengths in bytes, and k is the number of elements or entries.
// All other operations take constant time and cost only the step of their node. Examples are size()
// of lists and bytes, bytes(), string() (except of bytes), and indexing a list.
//
// clang-format off: a table
//   any node, each time it runs              1
//   a.b, has(a.b), a[b], b in a, for maps    k/4, and n/16 for each key of the same length
//   == and !=                                1
//   == and != of strings of equal length     n/16 in addition
//   x in list, == of lists                   for each element: == of the values
//   == of maps                               for each entry: 1 + k/4, lookup, and == of the values
//   < <= > >= of strings                     min(n, m)/8
//   a + b of strings, size(), string(bytes)  n/16 of the result or the input
//   a + b of lists, filter, map              k
//   startsWith, endsWith                     m/16 for a prefix or suffix of m bytes
//   contains                                 (n/16 + 1) * (m/16 + 1)
//   matches                                  1 + n/4
//   matches, with a pattern from data        1000 + 50 m, 4 for each instruction of the compiled
//                                            expression, and n/4 for each 64 instructions
//   int, uint, double, timestamp of a string n/4
//   duration of a string                     n
//   a map literal                            == of each pair of its keys
// clang-format on
class Context {
 public:
  static constexpr unsigned kMaxLocals = 16;  // limit for nested macros

  Context(Arena &arena, std::uint64_t budget, std::span<const Value> values)
      : variables(values), arena_(arena), left_(budget) {}

  // Subtracts steps from the budget. If the budget is exceeded, the whole evaluation fails, even
  // inside || and &&.
  bool charge(std::uint64_t steps) {
    if (steps <= left_) [[likely]] {
      left_ -= steps;
      return !stopped_;
    }
    stop("the evaluation exceeds its budget");
    return false;
  }
  bool charge_text(std::size_t bytes) { return charge(bytes / 16); }
  void stop(const char *why) {
    if (!stopped_) stopped_ = why;
    left_ = 0;
  }
  bool stopped() const { return stopped_ != nullptr; }
  const char *why() const { return stopped_; }

  // These functions allocate from the arena. If its memory limit is reached, they stop the
  // evaluation and return nullptr or an error value.
  char *text_room(std::size_t bytes);
  Value *value_room(std::size_t count);
  Value copy_string(std::string_view text, Kind kind = Kind::kString);
  Value make_list(const Value *values, std::size_t count);  // `values` must be in the arena
  Value make_map(const Value *pairs, std::size_t count);    // key, value, key ...

  std::span<const Value> variables;
  Value locals[kMaxLocals];

 private:
  Arena &arena_;
  std::uint64_t left_;
  const char *stopped_ = nullptr;
};

// Compares two values as CEL's == does. Numbers of different types are compared by value. Other
// values of different types are unequal. If the budget is exceeded, stops the evaluation and
// returns false.
bool equal(Context &context, const Value &a, const Value &b, unsigned depth = 0);

// Compares two values as CEL's < does. Returns kUnordered if a value is NaN, and kIncomparable if
// the types have no order or the budget is exceeded.
enum Order : std::int8_t { kLess = -1, kSame = 0, kGreater = 1, kUnordered = 2, kIncomparable = 3 };
Order order(Context &context, const Value &a, const Value &b);

}  // namespace bulkhead::cel
