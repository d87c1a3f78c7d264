#include "embed/seal.hpp"

#include <array>
#include <cstring>

namespace bulkhead {
namespace {

constexpr char version = 2;
constexpr std::size_t plain_bytes = 1 + sizeof(std::uint32_t) * 2 + 1 + sizeof(std::uint64_t);

}  // namespace

std::string Sealer::seal(const SealedSession &session, std::string_view context) const {
  std::array<char, plain_bytes> plain;
  plain[0] = version;
  std::memcpy(&plain[1], &session.epoch, sizeof session.epoch);
  std::memcpy(&plain[5], &session.caps, sizeof session.caps);
  plain[9] = static_cast<char>(session.revision);
  std::memcpy(&plain[10], &session.since_ns, sizeof session.since_ns);
  return sealer_.seal({plain.data(), plain.size()}, context);
}

std::optional<SealedSession> Sealer::open(std::string_view sealed, std::string_view context) const {
  const std::optional<std::string> opened = sealer_.open(sealed, context, plain_bytes);
  if (!opened || opened->size() != plain_bytes || opened->front() != version) return std::nullopt;
  const char *const plain = opened->data();
  SealedSession session;
  std::memcpy(&session.epoch, &plain[1], sizeof session.epoch);
  std::memcpy(&session.caps, &plain[5], sizeof session.caps);
  session.revision = static_cast<std::uint8_t>(plain[9]);
  std::memcpy(&session.since_ns, &plain[10], sizeof session.since_ns);
  return session;
}

}  // namespace bulkhead
