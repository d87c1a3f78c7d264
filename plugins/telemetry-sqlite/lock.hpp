// Selects and locks the chain that this gateway writes: the first chain that is not locked yet.
#pragma once

#include <cstdint>
#include <string>

namespace telemetry_sqlite {

class ChainLock {
 public:
  static constexpr std::uint32_t max_chains = 64;  // limit for gateways that share a folder

  ChainLock() = default;
  ~ChainLock();
  ChainLock(const ChainLock &) = delete;
  ChainLock &operator=(const ChainLock &) = delete;

  // Returns an empty string if chain() is now locked, until this object is destroyed or the process
  // exits. Otherwise, returns the error.
  std::string take(const std::string &folder);
  std::uint32_t chain() const noexcept { return chain_; }

 private:
  int fd_ = -1;
  std::uint32_t chain_ = 0;
};

}  // namespace telemetry_sqlite
