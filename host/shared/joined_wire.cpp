#include "shared/joined_wire.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "bulkhead/cpp/clock.hpp"
#include "common/complain.hpp"
#include "common/paths.hpp"
#include "common/signals.hpp"
#include "mcp-frame/metadata_line.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

constexpr std::string_view own_name = "bulkhead";
// A signal that arrives just before poll() is called is noticed within this time.
constexpr int signal_look_ms = 200;

}  // namespace

JoinedWire::JoinedWire(RunningGateway gateway, std::uint64_t max_message_bytes)
    : gateway_(std::move(gateway)),
      max_total_(max_message_bytes + mcp_frame::header_bytes + mcp_frame::max_name),
      reader_(max_total_) {}

Result<void> JoinedWire::open(OnMessage on_message) {
  on_message_ = std::move(on_message);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (gateway_.path.size() >= sizeof address.sun_path) {
    return fail(BH_E_INVALID, gateway_.endpoint() + ": its socket path is too long");
  }
  std::memcpy(address.sun_path, gateway_.path.data(), gateway_.path.size());
  OwnedFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
    return fail(BH_E_UNAVAILABLE, describe_errno("connecting to " + gateway_.endpoint(), errno));
  fd_ = std::move(fd);
  write(mcp_frame::metadata_line(gateway_.token, own_name));
  return {};
}

void JoinedWire::send(std::string_view message) {
  mcp::Scan scan;
  mcp::ScanError error;
  const bool request = mcp::scan(message, &scan, &error) && scan.kind == mcp::Kind::request;
  mcp_frame::Frame frame;
  frame.stream = request ? ++last_stream_ : 0;
  frame.notification = !request;
  frame.name = own_name;
  std::array<char, mcp_frame::max_head> head;
  std::size_t size = 0;
  if (encode_head(frame, message.size(), head.data(), &size, max_total_) !=
      mcp_frame::Fault::none) {
    complain("the message exceeds limits.message_bytes");
    return fd_.reset();
  }
  write({head.data(), size});
  write(message);
}

void JoinedWire::write(std::string_view bytes) {
  while (!bytes.empty() && fd_) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR && !stop_requested()) continue;
    if (n <= 0) return fd_.reset();
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void JoinedWire::wait(const std::function<bool()> &done, std::uint64_t timeout_ms) {
  const std::uint64_t deadline = bh::monotonic_ms() + timeout_ms;
  while (fd_ && !done() && !stop_requested()) {
    const std::uint64_t now = bh::monotonic_ms();
    if (now >= deadline) return;
    pollfd ready{fd_.get(), POLLIN, 0};
    const auto wait_ms = std::min<std::uint64_t>(deadline - now, signal_look_ms);
    if (::poll(&ready, 1, static_cast<int>(wait_ms)) > 0 && !read_some()) fd_.reset();
  }
}

// Reads the available input. Returns false if the connection was closed or is unusable.
bool JoinedWire::read_some() {
  std::array<char, 65'536> buffer;
  const ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) return false;
  std::string_view in(buffer.data(), static_cast<std::size_t>(n));
  mcp_frame::Frame frame;
  for (;;) {
    switch (reader_.next(&in, &frame)) {
      case mcp_frame::FrameReader::Step::more:
        return true;
      case mcp_frame::FrameReader::Step::frame:
        if (!frame.payload.empty()) on_message_(frame.payload);
        break;
      case mcp_frame::FrameReader::Step::bad_frame:
        break;
      case mcp_frame::FrameReader::Step::lost:
        return false;
    }
  }
}

}  // namespace bulkhead::program
