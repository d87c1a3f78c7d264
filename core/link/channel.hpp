// One end of a socket pair between two processes. It carries frames in both directions, and a file
// descriptor can be attached to a frame. Both processes run the same executable on the same
// machine, so frame headers are in host byte order. Incoming frames are validated nevertheless,
// because the other process may be compromised.
//
// Owned by its creator. All functions must be called on the reactor thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/owned_fd.hpp"
#include "base/result.hpp"
#include "bulkhead/abi/core.h"
#include "reactor/reactor.hpp"

namespace bulkhead::link {

struct Frame {
  std::uint32_t bytes = 0;  // length of the payload that follows; set by send()
  std::uint16_t kind = 0;
  std::uint16_t has_fd = 0;  // 1 if a descriptor is attached; set by send()
  // from the server stub: the number that plugin_named assigned, unless frames.hpp states otherwise
  std::uint32_t plugin = 0;
  std::uint32_t code = 0;  // a status, message kind or flags, depending on `kind`
  std::uint64_t exchange = 0;
  std::uint64_t value = 0;  // a deadline, delay, size or other number, depending on `kind`
};
static_assert(sizeof(Frame) == 32);

class Channel {
 public:
  class Receiver {
   public:
    virtual ~Receiver() = default;
    // Handles one frame. The payload is borrowed; the receiver owns `fd`. May destroy the channel.
    virtual void frame(Channel &channel, const Frame &frame, std::string_view payload,
                       OwnedFd fd) = 0;
    // Called once, after the peer has closed the socket or violated the protocol, or after the
    // socket has failed. May destroy the channel.
    virtual void closed(Channel &channel, std::string_view reason) = 0;
  };

  static constexpr std::size_t max_fds_queued = 1024;

  // max_frame limits the payload of a frame: a larger incoming frame is a protocol violation, and
  // send() rejects a larger frame. send() also rejects a frame if the queue would exceed max_queue
  // bytes or max_fds_queued descriptors; an empty queue may exceed max_queue. Incoming descriptors
  // are accepted only if `with_fds` is set.
  Channel(Reactor &reactor, OwnedFd socket, Receiver &receiver, std::uint64_t max_frame,
          std::uint64_t max_queue, bool with_fds);
  ~Channel();
  Channel(const Channel &) = delete;
  Channel &operator=(const Channel &) = delete;

  // Replaces the limit for incoming frames. Must be called in the same iteration of the event loop
  // as the constructor.
  void accept(std::uint64_t max_frame) { max_frame_in_ = max_frame; }

  // Queues a frame. At the end of each iteration of the event loop, all queued frames are written,
  // usually with one system call. A large payload without a descriptor is written immediately, as
  // far as the socket accepts it. The caller keeps `fd` (-1: none); the peer receives a duplicate.
  // Returns BH_E_LIMIT if the frame is too large, the queue is full or `fd` cannot be duplicated,
  // and BH_STALE if the channel has been closed.
  bh_status send(Frame frame, const bh_str *parts, std::uint32_t count, int fd = -1);
  bh_status send(Frame frame, std::string_view payload = {}, int fd = -1);
  // Writes as much of the queue as the socket accepts. Needed before the process exits.
  void flush();
  bool open() const noexcept { return static_cast<bool>(socket_); }
  std::uint64_t queued() const noexcept { return out_.size() - out_at_; }
  // Returns the size of the queue in memory, which may include bytes that were already sent.
  std::uint64_t queue_memory() const noexcept { return out_.capacity(); }

 private:
  void on_event(std::uint32_t events);
  void on_turn_end();
  void read();
  bool take_frames(std::string_view bytes, std::size_t *used);
  bool write_some();
  void want_write(bool on);
  void try_later();
  void fail(std::string_view reason);

  struct WaitingFd {
    std::uint64_t at;  // stream offset of the descriptor's frame
    OwnedFd fd;
  };

  Reactor &reactor_;
  OwnedFd socket_;
  Receiver &receiver_;
  const std::uint64_t max_frame_, max_queue_;
  std::uint64_t max_frame_in_;
  const bool with_fds_;
  std::uint64_t watch_ = 0;
  std::string in_;  // an incomplete frame
  std::string out_;
  std::size_t out_at_ = 0;
  std::uint64_t sent_ = 0;  // total number of bytes written
  std::deque<WaitingFd> out_fds_;
  std::deque<OwnedFd> in_fds_;
  bool flush_waits_ = false;
  bool writable_wanted_ = false;
  std::uint64_t retry_timer_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Returns two connected stream sockets. Both are non-blocking and close-on-exec.
Result<std::pair<OwnedFd, OwnedFd>> socket_pair();

}  // namespace bulkhead::link
