#include "config.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rapidjson/document.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "bulkhead/cpp/basics.hpp"

namespace transport_http {

namespace {

using rapidjson::Value;

std::string_view text_of(const Value &value) {
  return {value.GetString(), value.GetStringLength()};
}

// Collects all errors, so that they are reported together.
class Reader {
 public:
  explicit Reader(const Value &object) : object_(object) {}

  void text(const char *name, std::string &out) {
    const auto it = object_.FindMember(name);
    if (it == object_.MemberEnd()) return;
    if (!it->value.IsString()) return fault(std::string(name) + " must be a string");
    out = text_of(it->value);
  }

  void texts(const char *name, std::vector<std::string> &out) {
    const auto it = object_.FindMember(name);
    if (it == object_.MemberEnd()) return;
    if (!it->value.IsArray()) return fault(std::string(name) + " must be a list of strings");
    for (const Value &item : it->value.GetArray()) {
      if (!item.IsString()) return fault(std::string(name) + " must be a list of strings");
      out.emplace_back(text_of(item));
    }
  }

  void milliseconds(const char *name, std::uint64_t least, std::uint64_t &out) {
    const auto it = object_.FindMember(name);
    if (it == object_.MemberEnd()) return;
    if (it->value.IsUint64() && it->value.GetUint64() >= least &&
        it->value.GetUint64() <= 86'400'000) {
      out = it->value.GetUint64();
    } else {
      fault(std::string(name) + " must be between " + std::to_string(least) + " and 86400000");
    }
  }

  void only(std::initializer_list<std::string_view> known) {
    for (const auto &member : object_.GetObject()) {
      const std::string_view name = text_of(member.name);
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      fault("'" + std::string(name) +
            "' is unknown; allowed: listen, path, sse_path, allowed_hosts, allowed_origins, token, "
            "keep_alive_ms");
    }
  }

  void fault(std::string text) {
    if (!faults_.empty()) faults_ += "; ";
    faults_ += text;
  }
  const std::string &faults() const { return faults_; }

 private:
  const Value &object_;
  std::string faults_;
};

bool is_path(std::string_view path) {
  return path.starts_with('/') && path.find_first_of("?#") == path.npos &&
         std::all_of(path.begin(), path.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

void check(Config &config, Reader &reader) {
  if (!is_path(config.path)) reader.fault("path must be an absolute path such as /mcp");
  if (!config.sse_path.empty()) {
    if (!is_path(config.sse_path))
      reader.fault("sse_path must be an absolute path such as /sse, or empty");
    config.message_path = config.sse_path.substr(0, config.sse_path.rfind('/') + 1) + "messages";
    if (config.sse_path == config.path || config.message_path == config.path ||
        config.message_path == config.sse_path) {
      reader.fault("path, sse_path and the message path derived from sse_path must differ");
    }
  }
  for (const std::string &origin : config.guard.origins) {
    if (origin.find("://") == origin.npos || origin.size() > Guard::max_origin) {
      reader.fault("allowed_origins must have the form https://app.example.com");
    }
  }
  const std::string &token = config.guard.token;
  if (token.size() > 4096 ||
      !std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7F; })) {
    reader.fault("token must be printable ASCII without spaces, at most 4096 characters");
  }
}

bool parse_port(std::string_view text, std::uint16_t &port) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), port);
  return failed == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool parse_unix(std::string_view path, ListenAddress &out) {
  sockaddr_un address{};
  if (path.empty() || path.size() >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  std::memcpy(&out.address, &address, sizeof address);
  out.size = sizeof address;
  out.loopback = true;
  out.unix_path = path;
  return true;
}

bool parse_v6(const std::string &host, std::uint16_t port, ListenAddress &out) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  if (::inet_pton(AF_INET6, host.c_str(), &address.sin6_addr) != 1) return false;
  out.loopback = IN6_IS_ADDR_LOOPBACK(&address.sin6_addr) != 0;
  std::memcpy(&out.address, &address, sizeof address);
  out.size = sizeof address;
  return true;
}

bool parse_v4(const std::string &host, std::uint16_t port, ListenAddress &out) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return false;
  out.loopback = ntohl(address.sin_addr.s_addr) >> 24 == 127;
  std::memcpy(&out.address, &address, sizeof address);
  out.size = sizeof address;
  return true;
}

}  // namespace

bh_status parse_config(std::string_view json, Config &out, bh_error *error) {
  rapidjson::Document document;
  constexpr unsigned flags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  if (json.empty()) json = "{}";
  if (json.size() > 1u << 20)
    return bh::fail(error, BH_E_INVALID, "the configuration is larger than 1 MiB");
  document.Parse<flags>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) {
    return bh::fail(error, BH_E_INVALID, "the configuration must be one JSON object");
  }
  Reader reader(document);
  reader.only(
      {"listen", "path", "sse_path", "allowed_hosts", "allowed_origins", "token", "keep_alive_ms"});
  reader.text("listen", out.listen);
  reader.text("path", out.path);
  reader.text("sse_path", out.sse_path);
  reader.texts("allowed_hosts", out.guard.hosts);
  reader.texts("allowed_origins", out.guard.origins);
  reader.text("token", out.guard.token);
  reader.milliseconds("keep_alive_ms", 100, out.keep_alive_ms);
  check(out, reader);
  ListenAddress address;
  bh_error inner = bh::make_error();
  if (ListenAddress::parse(out.listen, address, &inner) != BH_OK) {
    reader.fault(std::string(bh::text(inner)));
  }
  if (!reader.faults().empty()) return bh::fail(error, BH_E_INVALID, reader.faults());
  return BH_OK;
}

bh_status ListenAddress::parse(std::string_view text, ListenAddress &out, bh_error *error) {
  constexpr std::string_view unix_prefix = "unix:";
  out = {};
  bool good = false;
  if (text.starts_with(unix_prefix)) {
    good = parse_unix(text.substr(unix_prefix.size()), out);
  } else if (const std::size_t colon = text.rfind(':'); colon != text.npos) {
    std::string host(text.substr(0, colon));
    std::uint16_t port = 0;
    if (host == "localhost") host = "127.0.0.1";
    if (parse_port(text.substr(colon + 1), port)) {
      good = host.size() > 2 && host.front() == '[' && host.back() == ']'
                 ? parse_v6(host.substr(1, host.size() - 2), port, out)
                 : parse_v4(host, port, out);
    }
  }
  if (good) return BH_OK;
  return bh::fail(error, BH_E_INVALID,
                  "listen '" + std::string(text.substr(0, 128)) +
                      "' is not a valid address: use 127.0.0.1:8808, [::1]:8808, 0.0.0.0:8808 or "
                      "unix:/path/to/socket");
}

std::uint16_t port_of(const sockaddr_storage &address) noexcept {
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in &>(address).sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6 &>(address).sin6_port);
  }
  return 0;
}

std::string to_text(const sockaddr_storage &address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto &v4 = reinterpret_cast<const sockaddr_in &>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(port_of(address));
  }
  if (address.ss_family == AF_INET6) {
    const auto &v6 = reinterpret_cast<const sockaddr_in6 &>(address);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    return "[" + std::string(text.data()) + "]:" + std::to_string(port_of(address));
  }
  return "unix";
}

std::string peer_text(int fd, const sockaddr_storage &address) {
  if (address.ss_family != AF_UNIX) return to_text(address);
  ucred user{};
  socklen_t size = sizeof user;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size) != 0) return to_text(address);
  return "uid:" + std::to_string(user.uid) + " pid:" + std::to_string(user.pid);
}

std::string peer_key(int fd, const sockaddr_storage &address) {
  const auto bytes = [](char kind, const void *data, std::size_t size) {
    return std::string(1, kind).append(static_cast<const char *>(data), size);
  };
  const auto v4 = [&](const unsigned char *data) {
    // Any local program can bind to any address in 127.0.0.0/8, so all of these addresses share one
    // key.
    return data[0] == 127 ? std::string("l") : bytes('4', data, 4);
  };
  if (address.ss_family == AF_INET) {
    const auto &in = reinterpret_cast<const sockaddr_in &>(address);
    return v4(reinterpret_cast<const unsigned char *>(&in.sin_addr));
  }
  if (address.ss_family == AF_INET6) {
    const in6_addr &in = reinterpret_cast<const sockaddr_in6 &>(address).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&in)) return v4(in.s6_addr + 12);
    return IN6_IS_ADDR_LOOPBACK(&in) ? "l" : bytes('6', in.s6_addr, 8);
  }
  ucred user{};
  socklen_t size = sizeof user;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size) != 0) return "u";
  return bytes('u', &user.uid, sizeof user.uid);
}

}  // namespace transport_http
