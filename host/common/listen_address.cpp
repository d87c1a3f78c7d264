#include "common/listen_address.hpp"

#include <arpa/inet.h>
#include <sys/un.h>

#include <charconv>
#include <cstdint>
#include <string_view>

namespace bulkhead::program {
namespace {

bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  const char *const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  return !text.empty() && error == std::errc() && stop == end;
}

bool is_host(const std::string &text) {
  in6_addr unused{};
  if (text == "localhost") return true;
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    return ::inet_pton(AF_INET6, text.substr(1, text.size() - 2).c_str(), &unused) == 1;
  }
  return ::inet_pton(AF_INET, text.c_str(), &unused) == 1;
}

}  // namespace

bool is_listen_address(const std::string &text) {
  constexpr std::string_view unix_prefix = "unix:";
  if (text.starts_with(unix_prefix)) {
    const std::size_t length = text.size() - unix_prefix.size();
    return length > 0 && length < sizeof(sockaddr_un{}.sun_path);
  }
  const std::size_t colon = text.rfind(':');
  return colon != std::string::npos && is_host(text.substr(0, colon)) &&
         is_port(std::string_view(text).substr(colon + 1));
}

}  // namespace bulkhead::program
