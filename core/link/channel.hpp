// One end of a socket between two processes of this program: frames out, frames in, descriptors
// along with them. Both ends are the same program on the same machine, so the header is in host
// order; what comes in is checked all the same, since the other process may have been taken over.
//
// Owner: whoever made it. Thread: the reactor's.
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
  std::uint32_t bytes = 0;  // of the payload that follows; set by send()
  std::uint16_t kind = 0;
  std::uint16_t has_fd = 0;  // 1: a descriptor comes with it; set by send()
  std::uint32_t plugin =
      0;                   // server stub to client stub: a number that plugin_named has given an id
  std::uint32_t code = 0;  // a status, a message kind, flags: as `kind` has it
  std::uint64_t exchange = 0;
  std::uint64_t value = 0;  // a deadline, a delay: as `kind` has it
};
static_assert(sizeof(Frame) == 32);

class Channel {
 public:
  class Receiver {
   public:
    virtual ~Receiver() = default;
    // One frame; payload is borrowed, fd is the receiver's. May destroy the channel.
    virtual void frame(Channel &channel, const Frame &frame, std::string_view payload,
                       OwnedFd fd) = 0;
    // The other end has gone, or sent what no end may send (`reason`). Once; may destroy it.
    virtual void closed(Channel &channel, std::string_view reason) = 0;
  };

  static constexpr std::size_t max_fds_queued = 1024;

  // Frames above max_frame bytes are a fault of the other end. More than max_queue bytes or
  // max_fds_queued descriptors that wait for the other end to read are refused by send(), but one
  // frame may always wait. with_fds: descriptors may come in.
  Channel(Reactor &reactor, OwnedFd socket, Receiver &receiver, std::uint64_t max_frame,
          std::uint64_t max_queue, bool with_fds);
  ~Channel();
  Channel(const Channel &) = delete;
  Channel &operator=(const Channel &) = delete;

  // Frames that come in may have so many bytes, instead of max_frame. Before the first turn.
  void accept(std::uint64_t max_frame) { max_frame_in_ = max_frame; }

  // Sends at the end of this turn, with the others of the turn in one system call; a large payload
  // goes at once. `fd` (-1: none) is duplicated by the kernel; the caller keeps its own.
  // BH_E_LIMIT: the queue is full and the frame was not taken. BH_STALE: the other end has gone.
  bh_status send(Frame frame, const bh_str *parts, std::uint32_t count, int fd = -1);
  bh_status send(Frame frame, std::string_view payload = {}, int fd = -1);
  // What send() has queued, now: before a process ends.
  void flush();
  bool open() const noexcept { return static_cast<bool>(socket_); }
  std::uint64_t queued() const noexcept { return out_.size() - out_at_; }

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
    std::uint64_t at;  // offset in the stream of the frame it belongs to
    OwnedFd fd;
  };

  Reactor &reactor_;
  OwnedFd socket_;
  Receiver &receiver_;
  const std::uint64_t max_frame_, max_queue_;
  std::uint64_t max_frame_in_;
  const bool with_fds_;
  std::uint64_t watch_ = 0;
  std::string in_;  // a frame that is not whole yet
  std::string out_;
  std::size_t out_at_ = 0;
  std::uint64_t sent_ = 0;  // bytes that have left, ever
  std::deque<WaitingFd> out_fds_;
  std::deque<OwnedFd> in_fds_;
  bool flush_waits_ = false;
  bool writable_wanted_ = false;
  std::uint64_t retry_timer_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Two connected stream sockets, non-blocking, close-on-exec.
Result<std::pair<OwnedFd, OwnedFd>> socket_pair();

}  // namespace bulkhead::link
