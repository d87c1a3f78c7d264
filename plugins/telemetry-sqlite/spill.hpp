// Stores records in a file while the database cannot be written, for example because the disk is
// full. The file's disk space is reserved at startup. Records that do not fit are rejected. At
// startup, the file may still contain records from the previous process.
//
// Owner: the Writer. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "telemetry-sqlite/row.hpp"

namespace telemetry_sqlite {

class Spill {
 public:
  Spill() = default;
  ~Spill();
  Spill(const Spill &) = delete;
  Spill &operator=(const Spill &) = delete;

  // Opens or creates the file and reserves its disk space. If the file already exists and is larger
  // than `bytes`, it is truncated once it contains no more records. Returns the error message, or
  // an empty string on success.
  std::string open(const std::string &path, std::uint64_t bytes);
  bool empty() const noexcept { return begin_ == end_; }
  // Returns false if the record does not fit or cannot be written.
  bool put(const Row &row);
  // Returns up to n records, oldest first. The records stay in the file until taken() is called.
  std::vector<Row> peek(std::size_t n);
  void taken();
  // Number of records that did not fit and that no `lost` mark has yet accounted for. The number is
  // stored in the file.
  std::uint64_t lost() const noexcept { return lost_; }
  void set_lost(std::uint64_t count);
  // Syncs the file to disk (fdatasync).
  void flush();

 private:
  bool write_at(std::uint64_t at, const std::string &bytes) const;
  void save_head();
  void shrink();

  int fd_ = -1;
  std::uint64_t wanted_ = 0, capacity_ = 0, begin_ = 0, end_ = 0, peeked_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace telemetry_sqlite
