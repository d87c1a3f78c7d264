// A ring of records that telemetry plugins have not yet acknowledged, in memory that outlives the
// process (part of the ledger, ledger.hpp). The recorder writes a record here before the answer is
// sent. The next endpoint process offers the records again, with the same numbers.
//
// Limits: memory_bytes in total, max_text for a request and a response, max_record for a record. A
// record that does not fit is kept only by the recorder; if the process ends before it is
// acknowledged, a gap in the numbers shows the loss. An entry becomes valid with the single store
// of `ends`. A reader does not trust the contents because the process that wrote them may have been
// compromised.
//
// Owner: the Ledger. Runs on the reactor thread. Only for_each() allocates memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "bulkhead/abi/ext/telemetry.h"

namespace bulkhead {

class RecordRing {
 public:
  static constexpr std::size_t memory_bytes = 32u << 20;
  static constexpr std::size_t max_text = 4096;         // longer texts are truncated
  static constexpr std::size_t max_record = 96u << 10;  // with all its texts

  // The memory layout. If the ring is empty, all bytes are zero.
  struct Memory {
    std::atomic<std::uint64_t> ends;  // start of the first entry and end of the last, 32 bits each
    std::atomic<std::uint64_t> next_number;  // of the next record; 0 if unknown
    alignas(8) std::array<char, memory_bytes> bytes;
  };

  explicit RecordRing(Memory &memory) : memory_(memory) {}
  RecordRing(const RecordRing &) = delete;
  RecordRing &operator=(const RecordRing &) = delete;

  // Appends a record; numbers must ascend. Returns false if the ring is full.
  bool put(const bh_record &record) noexcept;
  // Removes the records below this number, which have been acknowledged.
  void release(std::uint64_t below) noexcept;
  // Returns true if less than an eighth of the memory is free.
  bool nearly_full() const noexcept;
  bool empty() const noexcept;

  std::uint64_t next_number() const noexcept {
    return memory_.next_number.load(std::memory_order_relaxed);
  }
  void set_next_number(std::uint64_t number) noexcept {
    memory_.next_number.store(number, std::memory_order_release);
  }
  // Enumerates the records left by an earlier process, oldest first, up to the first damaged
  // record. The strings are valid only during the call.
  void for_each(const std::function<void(const bh_record &)> &f) const;
  // Removes all records but keeps the next number.
  void clear() noexcept { memory_.ends.store(0, std::memory_order_release); }

 private:
  struct Ends {
    std::uint32_t begin, end;
  };
  Ends ends() const noexcept;
  void set_ends(Ends ends) noexcept;
  std::uint32_t find_entry(Ends now, std::uint32_t *place) const noexcept;

  Memory &memory_;
};

}  // namespace bulkhead
