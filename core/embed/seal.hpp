// Encrypts and authenticates the state of a client session. The client stores the result as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "route/text_sealer.hpp"

namespace bulkhead {

struct SealedSession {
  std::uint32_t epoch = 0;  // number of the gateway run in which the session was sealed
  std::uint32_t caps = 0;
  std::uint8_t revision = 0;
  std::uint64_t since_ns = 0;  // time of sealing on the machine's monotonic clock
};

// Seals sessions with XChaCha20-Poly1305 and a random nonce. `context` (session ID, transport,
// principal) is authenticated together with the session. The output is base64url without padding.
// The key is 32 bytes long.
class Sealer {
 public:
  static constexpr std::size_t key_bytes = TextSealer::key_bytes;

  explicit Sealer(std::string key) : sealer_(std::move(key)) {}
  bool usable() const noexcept { return sealer_.usable(); }
  std::string seal(const SealedSession &session, std::string_view context) const;
  // Returns nullopt if the text is forged or damaged, or was sealed with another key or context.
  std::optional<SealedSession> open(std::string_view sealed, std::string_view context) const;

 private:
  const TextSealer sealer_;
};

}  // namespace bulkhead
