#include "builtin-http/address.hpp"

#include <arpa/inet.h>

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

// The IANA special-purpose registry, what is not globally reachable, and the metadata service that
// one cloud keeps at a public address.
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

bool is_public6(const unsigned char *a) noexcept {
  static constexpr unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  static constexpr unsigned char nat64[12] = {0, 0x64, 0xFF, 0x9B};
  if (std::memcmp(a, mapped, 12) == 0 || std::memcmp(a, nat64, 12) == 0) {
    return is_public4(word(a + 12));
  }
  if (a[0] >> 5 != 1) return false;  // only 2000::/3 is handed out
  const std::uint32_t front = word(a);
  if (front >> 9 == 0x20010000u >> 9) return false;  // 2001::/23, Teredo among them
  if (front == 0x20010DB8u) return false;            // documentation
  if (front >> 12 == 0x3FFF0000u >> 12) return false;
  if (front >> 16 == 0x2002) return is_public4(word(a + 2));  // 6to4
  return true;
}

}  // namespace

bool is_public_address(std::string_view address) noexcept {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.size() >= sizeof text) return false;
  std::memcpy(text, address.data(), address.size());
  unsigned char bytes[16];
  if (::inet_pton(AF_INET, text, bytes) == 1) return is_public4(word(bytes));
  return ::inet_pton(AF_INET6, text, bytes) == 1 && is_public6(bytes);
}

}  // namespace builtin_http
