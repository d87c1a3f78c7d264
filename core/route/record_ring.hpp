// A ring buffer of records that telemetry plugins have not acknowledged yet. It is a part of the
// ledger (ledger.hpp), so it survives a crash of the process. The recorder writes a record here
// before the response is sent. The next endpoint process passes the records to the plugins again,
// with the same numbers.
//
// Limits: memory_bytes in total; max_text for each request and response; max_record for each
// record. A record that does not fit exists only in the recorder. If the process crashes, such a
// record is lost, and a gap in the numbers shows the loss.
//
// A new record becomes valid with a single atomic store to `ends`. Security: the contents are
// untrusted, because the process that wrote them may have been compromised.
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
  static constexpr std::size_t max_record = 96u << 10;  // including all texts

  // The memory layout. An empty ring consists of zero bytes.
  struct Memory {
    // Start of the first entry and end of the last entry, 32 bits each.
    std::atomic<std::uint64_t> ends;
    std::atomic<std::uint64_t> next_number;  // number of the next record; 0 if unknown
    alignas(8) std::array<char, memory_bytes> bytes;
  };

  explicit RecordRing(Memory &memory) : memory_(memory) {}
  RecordRing(const RecordRing &) = delete;
  RecordRing &operator=(const RecordRing &) = delete;

  // Appends a record, whose number must be higher than all previous numbers. Returns false if the
  // record does not fit.
  bool put(const bh_record &record) noexcept;
  // Removes all records with lower numbers. Called when these records have been acknowledged.
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
  // Calls f for each record in the ring, oldest first, and stops at the first damaged
  // record. The record's strings are valid only during the call. Returns false if a record is
  // damaged: records that are appended behind it would not be found.
  bool for_each(const std::function<void(const bh_record &)> &f) const;
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
