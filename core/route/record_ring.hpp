// Records that no telemetry plugin has acknowledged yet, in memory that outlives the process: the
// part of the ledger's (ledger.hpp) that the recorder writes before an answer leaves. The next
// process of the endpoint offers them again, under their numbers.
//
// Bounds: memory_bytes in all, max_text of a request and a response, max_record of a record. What
// finds no room is not in it: the recorder still has it, and a gap in the numbers shows it where
// the process ends first. An entry counts once the one store of `ends` has been made. A reader
// trusts nothing of it, since the process that wrote it may have been taken over.
//
// Owner: the Ledger. Thread: [io]. Only for_each() allocates.
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
  static constexpr std::size_t max_text = 4096;         // of a request or response; cut behind that
  static constexpr std::size_t max_record = 96u << 10;  // with all its texts

  // As it lies in the memory. All zero: empty.
  struct Memory {
    std::atomic<std::uint64_t> ends;  // 32 bits each: where the first entry begins, the last ends
    std::atomic<std::uint64_t> next_number;  // that no record has had yet; 0: not known
    alignas(8) std::array<char, memory_bytes> bytes;
  };

  explicit RecordRing(Memory &memory) : memory_(memory) {}
  RecordRing(const RecordRing &) = delete;
  RecordRing &operator=(const RecordRing &) = delete;

  // Behind those that are there; numbers grow. False: no room.
  bool put(const bh_record &record) noexcept;
  // Those below this number are acknowledged.
  void release(std::uint64_t below) noexcept;
  // Fewer than an eighth of it is left.
  bool nearly_full() const noexcept;
  bool empty() const noexcept;

  std::uint64_t next_number() const noexcept {
    return memory_.next_number.load(std::memory_order_relaxed);
  }
  void set_next_number(std::uint64_t number) noexcept {
    memory_.next_number.store(number, std::memory_order_release);
  }
  // What an earlier process has left, oldest first, up to the first that is damaged. The record's
  // texts are valid during the call.
  void for_each(const std::function<void(const bh_record &)> &f) const;
  // All are forgotten; the number stays.
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
