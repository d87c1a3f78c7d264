// Resources of one evaluation: an arena, and a budget of steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "value.hpp"

namespace bulkhead::cel {

// A memory arena that is released as a whole. It keeps its first block, so that ordinary
// evaluations do not use the heap. One thread at a time.
class Arena {
 public:
  explicit Arena(std::size_t max_bytes = std::size_t{1} << 20) : max_bytes_(max_bytes) {}

  // Aligned for any Value. nullptr: the limit is reached.
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

// Cost in steps. n, m: bytes of texts; k: elements or entries. Operations that are not listed take
// constant time (including size() of lists and bytes, bytes(), string() except of bytes, and
// indexing a list) and cost the one step of their node.
//
// clang-format off: a table
//   any node, each time it runs              1
//   a.b, has(a.b), a[b], b in a, of a map    k/4, and n/16 for each key of the same length
//   x in list, == of lists                   1 for each element, and == of the two
//   == and != of texts of one length         1 + n/16
//   == of maps                               1 + k/4 for each entry, finding it, and == of the two
//   < <= > >= of texts                       min(n, m)/8
//   a + b of texts, size(), string(bytes)    n/16 of the result or the input
//   a + b of lists, filter, map              k
//   startsWith, endsWith                     m/16 of the beginning or end
//   contains                                 (n/16 + 1) * (m/16 + 1)
//   matches                                  1 + n/4
//   matches, the expression from data        1000 + 50 m, 4 for each instruction of the compiled
//                                            expression, and n/4 for each 64 instructions
//   int, uint, double, timestamp of a string n/4
//   duration of a string                     n
//   a map literal                            == of each pair of its keys
// clang-format on
class Context {
 public:
  static constexpr unsigned kMaxLocals = 16;  // nested macros

  Context(Arena &arena, std::uint64_t budget, std::span<const Value> values)
      : variables(values), arena_(arena), left_(budget) {}

  // Deducts steps from the budget. If it is exceeded, the evaluation ends with an error that
  // neither || nor && hides.
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

  // Allocates from the arena. nullptr: the limit is reached, and the evaluation is stopped.
  char *text_room(std::size_t bytes);
  Value *value_room(std::size_t count);
  Value copy_string(std::string_view text, Kind kind = Kind::kString);
  Value make_list(const Value *values, std::size_t count);  // values: in the arena
  Value make_map(const Value *pairs, std::size_t count);    // key, value, key, value ...

  std::span<const Value> variables;
  Value locals[kMaxLocals];

 private:
  Arena &arena_;
  std::uint64_t left_;
  const char *stopped_ = nullptr;
};

// CEL's ==: numbers of different kinds are compared by value; other different kinds are unequal.
bool equal(Context &context, const Value &a, const Value &b, unsigned depth = 0);

// CEL's order: -1, 0, 1; kUnordered with a NaN, kIncomparable for kinds without an order.
enum Order : std::int8_t { kLess = -1, kSame = 0, kGreater = 1, kUnordered = 2, kIncomparable = 3 };
Order order(Context &context, const Value &a, const Value &b);

}  // namespace bulkhead::cel
