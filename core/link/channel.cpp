#include "link/channel.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "bulkhead/cpp/text.hpp"

namespace bulkhead::link {
namespace {

constexpr std::size_t scratch_bytes = 256u << 10;
constexpr std::size_t large_payload = 16u << 10;  // smaller payloads are copied into the queue
constexpr std::size_t max_fds_waiting = 64;       // descriptors that arrived before their frames
constexpr std::size_t max_parts = 64;             // limit for one gathering write
constexpr std::uint64_t retry_ms = 50;

// Returns true if the kernel ran out of a resource. This is not the peer's fault: the limit on
// descriptors in flight, for example, is shared by all processes of a user.
bool is_shortage(int error) {
  return error == ETOOMANYREFS || error == ENOBUFS || error == ENOMEM;
}

// Returns the thread's read buffer. All channels of a thread share it, because a handler is never
// called inside another one. The buffer is not freed when the thread exits. Few threads have
// channels, and registering a destructor for thread exit would take a lock in the dynamic linker.
// If a plugin's static constructor hangs, that lock is never released.
char *scratch() {
  static std::mutex mutex;
  static auto *const all = new std::vector<std::unique_ptr<char[]>>;
  thread_local char *mine = nullptr;
  if (mine == nullptr) {
    const std::lock_guard lock(mutex);
    mine = all->emplace_back(new char[scratch_bytes]).get();
  }
  return mine;
}

// Sends as much as the socket accepts, with one sendmsg(). A descriptor (-1: none) is attached to
// the first byte.
ssize_t send_once(int socket, iovec *parts, std::size_t count, int fd) {
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

void collect_fds(msghdr *message, std::deque<OwnedFd> *out) {
  for (cmsghdr *header = CMSG_FIRSTHDR(message); header != nullptr;
       header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      out->emplace_back(fd);
    }
  }
}

}  // namespace

Result<std::pair<OwnedFd, OwnedFd>> socket_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
    return bulkhead::fail(BH_E_IO, "cannot create a socket pair: " + bh::error_name(errno));
  }
  return std::pair{OwnedFd(fds[0]), OwnedFd(fds[1])};
}

Channel::Channel(Reactor &reactor, OwnedFd socket, Receiver &receiver, std::uint64_t max_frame,
                 std::uint64_t max_queue, bool with_fds)
    : reactor_(reactor),
      socket_(std::move(socket)),
      receiver_(receiver),
      max_frame_(max_frame),
      max_queue_(max_queue),
      max_frame_in_(max_frame),
      with_fds_(with_fds) {
  reactor_.watch(this, socket_.get(), BH_FD_READ, bh::fd_callback<&Channel::on_event>(this),
                 &watch_);
}

Channel::~Channel() {
  *alive_ = false;
  reactor_.forget(this);
}

// ---- outgoing frames -------------------------------------------------------------------------

bh_status Channel::send(Frame frame, std::string_view payload, int fd) {
  const bh_str part{payload.data(), payload.size()};
  return send(frame, &part, 1, fd);
}

bh_status Channel::send(Frame frame, const bh_str *parts, std::uint32_t count, int fd) {
  if (!socket_) return BH_STALE;
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < count; ++i) bytes += parts[i].n;
  if (bytes > max_frame_) return BH_E_LIMIT;
  if (queued() > 0 && queued() + sizeof frame + bytes > max_queue_) return BH_E_LIMIT;
  if (fd >= 0 && out_fds_.size() >= max_fds_queued) return BH_E_LIMIT;
  frame.bytes = static_cast<std::uint32_t>(bytes);
  frame.has_fd = fd >= 0 ? 1 : 0;
  if (fd >= 0) {
    OwnedFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!copy) return BH_E_LIMIT;
    out_fds_.push_back({sent_ + queued(), std::move(copy)});
  }
  if (bytes >= large_payload && !writable_wanted_ && count < max_parts) {
    flush();
    if (!socket_) return BH_STALE;
    if (queued() == 0 && out_fds_.empty()) {
      iovec vector[max_parts];
      vector[0] = {&frame, sizeof frame};
      for (std::uint32_t i = 0; i < count; ++i) {
        vector[i + 1] = {const_cast<char *>(parts[i].p), parts[i].n};
      }
      const ssize_t sent = send_once(socket_.get(), vector, count + 1, -1);
      std::size_t left = sent < 0 ? 0 : static_cast<std::size_t>(sent);
      sent_ += left;
      for (std::uint32_t i = 0; i <= count; ++i) {
        const std::size_t skip = std::min(left, vector[i].iov_len);
        left -= skip;
        out_.append(static_cast<char *>(vector[i].iov_base) + skip, vector[i].iov_len - skip);
      }
      if (queued() > 0) want_write(true);  // the event loop reports a broken socket
      return BH_OK;
    }
  }
  out_.append(reinterpret_cast<const char *>(&frame), sizeof frame);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (parts[i].n > 0) out_.append(parts[i].p, parts[i].n);
  }
  if (!flush_waits_ && !writable_wanted_) {
    flush_waits_ = true;
    reactor_.defer(this, bh::callback<&Channel::on_turn_end>(this));
  }
  return BH_OK;
}

void Channel::on_turn_end() {
  flush_waits_ = false;
  flush();
}

void Channel::flush() {
  bool shortage = false;
  while (socket_ && queued() > 0) {
    if (write_some()) continue;
    shortage = is_shortage(errno);
    break;
  }
  if (queued() == 0) {
    out_.clear();
    out_at_ = 0;
    if (out_.capacity() > (1u << 20)) out_.shrink_to_fit();
  } else if (out_at_ > out_.size() / 2 && out_at_ > (1u << 20)) {
    // Under steady load the queue may never be empty, so sent bytes are also removed here.
    out_.erase(0, out_at_);
    out_at_ = 0;
  }
  if (!socket_) return;
  want_write(queued() > 0 && !shortage);
  if (shortage) try_later();
}

// Retries after a delay. The socket remains writable during a resource shortage, so waiting for a
// write event would be a busy loop.
void Channel::try_later() {
  if (retry_timer_ != 0) return;
  retry_timer_ = reactor_.timer_start(this, retry_ms, bh::callback(this, [](Channel &self) {
                                        self.retry_timer_ = 0;
                                        self.flush();
                                      }));
}

// Writes queued bytes, but stops before the next frame that has a descriptor. A descriptor must be
// attached to the first byte of its own frame, so it is sent only if that byte is the next one to
// be written.
bool Channel::write_some() {
  std::size_t bytes = queued();
  int fd = -1;
  if (!out_fds_.empty()) {
    if (out_fds_.front().at == sent_) {
      fd = out_fds_.front().fd.get();
      if (out_fds_.size() > 1) bytes = std::min<std::uint64_t>(bytes, out_fds_[1].at - sent_);
    } else {
      bytes = std::min<std::uint64_t>(bytes, out_fds_.front().at - sent_);
    }
  }
  iovec part{out_.data() + out_at_, bytes};
  const ssize_t sent = send_once(socket_.get(), &part, 1, fd);
  if (sent < 0) return false;  // full or broken; the event loop reports a broken socket
  if (fd >= 0) out_fds_.pop_front();
  out_at_ += static_cast<std::size_t>(sent);
  sent_ += static_cast<std::uint64_t>(sent);
  return true;
}

void Channel::want_write(bool on) {
  if (on == writable_wanted_) return;
  writable_wanted_ = on;
  reactor_.modify(watch_, on ? BH_FD_READ | BH_FD_WRITE : BH_FD_READ);
}

// ---- incoming frames -------------------------------------------------------------------------

void Channel::on_event(std::uint32_t events) {
  if ((events & BH_FD_WRITE) != 0) flush();
  if ((events & (BH_FD_READ | BH_FD_ERROR)) != 0) read();
}

void Channel::read() {
  // The rest of a large frame is read directly into the frame's buffer.
  std::size_t room = scratch_bytes;
  char *to = scratch();
  const std::size_t had = in_.size();
  if (had >= sizeof(Frame)) {
    Frame frame;
    std::memcpy(&frame, in_.data(), sizeof frame);
    const std::size_t missing = sizeof frame + frame.bytes - had;
    if (missing > 4096) {
      room = std::min(missing, scratch_bytes * 4);
      in_.resize(had + room);
      to = in_.data() + had;
    }
  }
  iovec part{to, room};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)];
  if (with_fds_) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  const ssize_t got = with_fds_ ? ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC)
                                : ::recv(socket_.get(), to, room, 0);
  const int error = errno;
  const bool direct = to != scratch();
  if (direct) in_.resize(had + (got > 0 ? static_cast<std::size_t>(got) : 0));
  if (got < 0) {
    if (error == EAGAIN || error == EINTR) return;
    return fail(error == ECONNRESET ? "the other process exited" : bh::error_name(error));
  }
  if (with_fds_) collect_fds(&message, &in_fds_);
  if (got == 0) return fail("the other process exited");
  if (in_fds_.size() > max_fds_waiting) return fail("too many file descriptors were received");
  if (!direct && in_.empty()) {
    std::size_t used = 0;
    const std::string_view bytes(to, static_cast<std::size_t>(got));
    if (take_frames(bytes, &used)) in_.assign(bytes.substr(used));
    return;
  }
  if (!direct) in_.append(to, static_cast<std::size_t>(got));
  std::size_t used = 0;
  std::string whole = std::move(in_);
  in_.clear();
  if (take_frames(whole, &used)) {
    if (used == whole.size()) return;  // also frees the buffer of a large frame
    whole.erase(0, used);
    in_ = std::move(whole);
  }
}

// Handles the complete frames in `bytes` and sets *used to their total size. Returns false if the
// channel was closed or destroyed; *used is then unspecified.
bool Channel::take_frames(std::string_view bytes, std::size_t *used) {
  const std::shared_ptr<bool> alive = alive_;  // the receiver may destroy the channel
  while (bytes.size() - *used >= sizeof(Frame)) {
    Frame frame;
    std::memcpy(&frame, bytes.data() + *used, sizeof frame);
    if (frame.bytes > max_frame_in_ || frame.has_fd > 1) {
      fail("it sent an oversized or malformed frame");
      return false;
    }
    if (bytes.size() - *used - sizeof frame < frame.bytes) {
      return true;
    }
    OwnedFd fd;
    if (frame.has_fd == 1) {
      if (in_fds_.empty()) {
        fail("a frame arrived without its file descriptor");
        return false;
      }
      fd = std::move(in_fds_.front());
      in_fds_.pop_front();
    }
    const std::string_view payload = bytes.substr(*used + sizeof frame, frame.bytes);
    *used += sizeof frame + frame.bytes;
    receiver_.frame(*this, frame, payload, std::move(fd));
    if (!*alive || !socket_) return false;
  }
  return true;
}

void Channel::fail(std::string_view reason) {
  if (!socket_) return;
  reactor_.unwatch(watch_);
  watch_ = 0;
  socket_.reset();
  in_.clear();
  out_.clear();
  out_at_ = 0;
  out_fds_.clear();
  in_fds_.clear();
  receiver_.closed(*this, reason);
}

}  // namespace bulkhead::link
