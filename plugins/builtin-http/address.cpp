#include "builtin-http/address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace builtin_http {
namespace {

struct Block4 {
  std::uint32_t base;
  unsigned bits;
};

constexpr std::uint32_t ip4(unsigned a, unsigned b, unsigned c, unsigned d) {
  return a << 24 | b << 16 | c << 8 | d;
}

// IPv4 blocks that are not globally reachable, according to the IANA special-purpose address
// registry. 168.63.129.16 is listed too: it is a public address but belongs to a cloud metadata
// service.
constexpr Block4 special4[] = {
    {ip4(0, 0, 0, 0), 8},      {ip4(10, 0, 0, 0), 8},       {ip4(100, 64, 0, 0), 10},
    {ip4(127, 0, 0, 0), 8},    {ip4(169, 254, 0, 0), 16},   {ip4(172, 16, 0, 0), 12},
    {ip4(192, 0, 0, 0), 24},   {ip4(192, 0, 2, 0), 24},     {ip4(192, 88, 99, 0), 24},
    {ip4(192, 168, 0, 0), 16}, {ip4(198, 18, 0, 0), 15},    {ip4(198, 51, 100, 0), 24},
    {ip4(203, 0, 113, 0), 24}, {ip4(168, 63, 129, 16), 32}, {ip4(224, 0, 0, 0), 3}};

bool is_public4(std::uint32_t address) noexcept {
  for (const Block4 &b : special4) {
    if ((address ^ b.base) >> (32 - b.bits) == 0) return false;
  }
  return true;
}

std::uint32_t word(const unsigned char *p) noexcept {
  return ip4(p[0], p[1], p[2], p[3]);
}

constexpr unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

bool is_public6(const unsigned char *a) noexcept {
  static constexpr unsigned char nat64[12] = {0, 0x64, 0xFF, 0x9B};
  if (std::memcmp(a, mapped, 12) == 0 || std::memcmp(a, nat64, 12) == 0) {
    return is_public4(word(a + 12));
  }
  if (a[0] >> 5 != 1) return false;  // only 2000::/3 is allocated
  const std::uint32_t front = word(a);
  if (front >> 9 == 0x20010000u >> 9) return false;  // 2001::/23, which includes Teredo
  if (front == 0x20010DB8u) return false;            // documentation
  if (front >> 12 == 0x3FFF0000u >> 12) return false;
  if (front >> 16 == 0x2002) return is_public4(word(a + 2));  // 6to4
  return true;
}

// Parses an address into 16 bytes. IPv4 addresses are stored as IPv4-mapped IPv6 addresses.
bool read_address(std::string_view address, unsigned char *bytes) noexcept {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.size() >= sizeof text) return false;
  std::memcpy(text, address.data(), address.size());
  if (::inet_pton(AF_INET6, text, bytes) == 1) return true;
  std::memcpy(bytes, mapped, 12);
  return ::inet_pton(AF_INET, text, bytes + 12) == 1;
}

bool is_mapped(const unsigned char *bytes) noexcept {
  return std::memcmp(bytes, mapped, 12) == 0;
}

bool same_prefix(const unsigned char *a, const unsigned char *b, unsigned bits) noexcept {
  if (std::memcmp(a, b, bits / 8) != 0) return false;
  return bits % 8 == 0 || (a[bits / 8] ^ b[bits / 8]) >> (8 - bits % 8) == 0;
}

}  // namespace

bool is_public_address(std::string_view address) noexcept {
  unsigned char bytes[16];
  return read_address(address, bytes) && is_public6(bytes);
}

bool Network::parse(std::string_view text, Network *out) noexcept {
  const std::size_t slash = text.find('/');
  if (!read_address(text.substr(0, slash), out->bytes_)) return false;
  const unsigned before = is_mapped(out->bytes_) ? 96 : 0;
  out->bits_ = 128;
  if (slash != text.npos) {
    const std::string_view digits = text.substr(slash + 1);
    const char *end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, out->bits_);
    if (error != std::errc() || at != end || out->bits_ > 128 - before) return false;
    out->bits_ += before;
  }
  for (unsigned bit = out->bits_; bit < 128; ++bit) {
    if ((out->bytes_[bit / 8] >> (7 - bit % 8) & 1) != 0) return false;
  }
  return true;
}

bool Network::contains(std::string_view address) const noexcept {
  unsigned char bytes[16];
  return read_address(address, bytes) && same_prefix(bytes, bytes_, bits_);
}

bool AddressRules::permit(std::string_view address) const noexcept {
  if (any || is_public_address(address)) return true;
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const Network &network) { return network.contains(address); });
}

}  // namespace builtin_http
