// Where records go while the database cannot be written, for example on a full disk: a file whose
// blocks are reserved from the beginning, so that a full disk does not matter to it. What does not
// fit is refused. What lies in it at the start of a process is from the one before it.
//
// Owner: the Writer. Thread: one at a time.
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

  // Makes and reserves the file, or goes on with it. One that is larger is cut to `bytes` when all
  // that it holds is kept elsewhere. The error's text.
  std::string open(const std::string &path, std::uint64_t bytes);
  bool empty() const noexcept { return begin_ == end_; }
  // False: there is no room for it.
  bool put(const Row &row);
  // The oldest ones, at most n; they stay until taken() says that they are kept elsewhere.
  std::vector<Row> peek(std::size_t n);
  void taken();
  // How many found no room and are not on record as lost yet; outlives the process.
  std::uint64_t lost() const noexcept { return lost_; }
  void set_lost(std::uint64_t count);
  // Written through to the disk.
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
