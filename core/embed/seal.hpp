// The encrypted and authenticated state of a client session, as text that the client stores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "route/text_sealer.hpp"

namespace bulkhead {

struct SealedSession {
  std::uint32_t epoch = 0;  // the run of the gateway process that sealed the session
  std::uint32_t caps = 0;
  std::uint8_t revision = 0;
  std::uint64_t since_ns = 0;  // the time of sealing on the machine's monotonic clock
};

// `context` (session id, principal) is authenticated together with the session. The key is 32 bytes
// long.
class Sealer {
 public:
  static constexpr std::size_t key_bytes = TextSealer::key_bytes;

  explicit Sealer(std::string key) : sealer_(std::move(key)) {}
  bool usable() const noexcept { return sealer_.usable(); }
  std::string seal(const SealedSession &session, std::string_view context) const;
  // Returns nothing if the text is forged, damaged, or was sealed with another key or context.
  std::optional<SealedSession> open(std::string_view sealed, std::string_view context) const;

 private:
  const TextSealer sealer_;
};

}  // namespace bulkhead
