#include "service/control_client.hpp"

#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "common/http_text.hpp"
#include "common/paths.hpp"

namespace bulkhead::program {
namespace {

std::uint64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000u +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000u;
}

// Reads until the end; returns why it did not come to that.
std::string read_answer(int fd, std::uint64_t wait_ms, std::string *out) {
  const std::uint64_t deadline = now_ms() + wait_ms;
  std::array<char, 16'384> buffer;
  for (;;) {
    const std::uint64_t now = now_ms();
    pollfd wait{fd, POLLIN, 0};
    if (now >= deadline || ::poll(&wait, 1, static_cast<int>(deadline - now)) == 0) {
      return "does not answer";
    }
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n == 0) return out->empty() ? "refuses to answer this user" : "";
    if (n < 0 && errno != EINTR && errno != EAGAIN) return describe_errno("reading", errno);
    if (n > 0) out->append(buffer.data(), static_cast<std::size_t>(n));
    if (out->size() > max_answer_bytes) return "answers more than is allowed";
  }
}

std::string request_text(std::string_view method, std::string_view target, std::string_view body) {
  std::string request(method);
  request.append(" ").append(target).append(" HTTP/1.1\r\nHost: bulkhead\r\n");
  request.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n");
  return request.append(body);
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
    std::string text;
    // A gateway that will not have us closes first; what it does not answer says so.
    [[maybe_unused]] const ssize_t n = ::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    found.error = read_answer(fd, wait_ms, &text);
    if (found.error.empty()) {
      auto reply = parse_reply(text);
      if (reply) {
        found.status = reply->status;
        found.answer = std::move(reply->body);
      } else {
        found.error = reply.error().text;
      }
    }
  } else if (errno == ECONNREFUSED || errno == ENOENT) {
    ::unlink(path.c_str());
    ::close(fd);
    return std::nullopt;
  } else {  // EAGAIN: its queue is full
    found.error = errno == EAGAIN ? "does not answer" : describe_errno("connecting", errno);
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
