// Selects and locks the chain to which this gateway writes: the first chain that is not locked by
// another process.
#pragma once

#include <cstdint>
#include <string>

namespace telemetry_sqlite {

class ChainLock {
 public:
  static constexpr std::uint32_t max_chains = 64;  // maximum number of gateways that share a folder

  ChainLock() = default;
  ~ChainLock();
  ChainLock(const ChainLock &) = delete;
  ChainLock &operator=(const ChainLock &) = delete;

  // Locks a chain until this object is destroyed or the process exits. Returns the error message,
  // or an empty string on success.
  std::string take(const std::string &folder);
  std::uint32_t chain() const noexcept { return chain_; }

 private:
  int fd_ = -1;
  std::uint32_t chain_ = 0;
};

}  // namespace telemetry_sqlite
