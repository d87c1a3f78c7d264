#include "service/control_client.hpp"

#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "bulkhead/cpp/clock.hpp"
#include "common/paths.hpp"
#include "http-codec/head_writer.hpp"
#include "http-codec/response_reader.hpp"
#include "service/service_protocol.hpp"

namespace bulkhead::program {

std::string gateway_name(std::string_view socket) {
  const std::string_view file = socket.substr(socket.rfind('/') + 1);
  const std::size_t digits = std::min(file.find_first_not_of("0123456789"), file.size());
  if (digits == 0 || !file.substr(digits).starts_with('-')) return std::string(socket);
  return "gateway with pid " + std::string(file.substr(0, digits));
}

namespace {

// Parses received bytes. Returns true if the response is complete or found->error is set.
bool consume(http_codec::ResponseReader &reader, std::string_view in, FoundGateway *found) {
  using Result = http_codec::ResponseReader::Result;
  std::string_view piece;
  for (;;) {
    switch (reader.next(in, piece)) {
      case Result::more:
        return false;
      case Result::head:
        found->status = reader.head().status;
        break;
      case Result::body:
        found->answer.append(piece);
        if (found->answer.size() <= max_answer_bytes) break;
        found->error = "the response exceeds the size limit";
        return true;
      case Result::done:
        return true;
      case Result::invalid:
      case Result::head_too_large:
        found->error = "the response is not valid HTTP";
        return true;
    }
  }
}

void read_answer(int fd, std::uint64_t wait_ms, FoundGateway *found) {
  const std::uint64_t deadline = bh::monotonic_ms() + wait_ms;
  http_codec::ResponseReader reader(max_answer_head_bytes);
  std::array<char, 16'384> buffer;
  for (bool any = false;;) {
    const std::uint64_t now = bh::monotonic_ms();
    pollfd wait{fd, POLLIN, 0};
    if (now >= deadline || ::poll(&wait, 1, static_cast<int>(deadline - now)) == 0) {
      found->error = "timed out";
      return;
    }
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno != EINTR && errno != EAGAIN) {
      found->error = describe_errno("reading", errno);
      return;
    }
    if (n == 0) {
      if (!any) {
        found->error =
            "the connection was closed without a response (access denied, too many connections, or "
            "shutdown)";
      }
      if (any && !reader.ends_with_connection()) found->error = "incomplete response";
      return;
    }
    any = any || n > 0;
    if (n > 0 && consume(reader, {buffer.data(), static_cast<std::size_t>(n)}, found)) return;
  }
}

std::string request_text(std::string_view method, std::string_view target, std::string_view body) {
  std::string request;
  http_codec::append_request_line(request, method, target);
  http_codec::append_field(request, "Host", "bulkhead");
  http_codec::append_field(request, "Content-Length", std::to_string(body.size()));
  return request.append("\r\n").append(body);
}

std::optional<FoundGateway> ask(const std::string &path, const std::string &request,
                                std::uint64_t wait_ms) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  FoundGateway found;
  found.socket = path;
  if (::connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0) {
    // If the gateway rejects this process, it closes the connection without reading, so send() may
    // fail. In that case, read_answer() reports the rejection because there is no response.
    [[maybe_unused]] const ssize_t n = ::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    read_answer(fd, wait_ms, &found);
    if (!found.error.empty()) found.status = 0, found.answer.clear();
  } else if (errno == ECONNREFUSED || errno == ENOENT) {
    ::unlink(path.c_str());
    ::unlink(local_socket_path(path).c_str());
    ::close(fd);
    return std::nullopt;
  } else {  // EAGAIN: the queue of pending connections is full
    found.error = errno == EAGAIN ? "timed out" : describe_errno("connecting", errno);
  }
  ::close(fd);
  return found;
}

}  // namespace

std::vector<FoundGateway> ask_gateways(const std::vector<std::string> &dirs,
                                       std::string_view method, std::string_view target,
                                       std::uint64_t wait_ms, std::string_view body) {
  const std::string request = request_text(method, target, body);
  std::vector<std::string> paths;
  for (const auto &dir : dirs) {
    DIR *open = ::opendir(dir.c_str());
    if (open == nullptr) continue;
    while (const dirent *entry = ::readdir(open)) {
      const std::string name = entry->d_name;
      if (name.ends_with(".sock")) paths.push_back(dir + "/" + name);
    }
    ::closedir(open);
  }
  std::sort(paths.begin(), paths.end());
  std::vector<FoundGateway> out;
  for (const auto &path : paths) {
    if (auto found = ask(path, request, wait_ms)) out.push_back(std::move(*found));
  }
  return out;
}

std::optional<FoundGateway> ask_gateway(const std::string &socket, std::string_view method,
                                        std::string_view target, std::uint64_t wait_ms,
                                        std::string_view body) {
  return ask(socket, request_text(method, target, body), wait_ms);
}

}  // namespace bulkhead::program
