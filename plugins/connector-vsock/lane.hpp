// Handles one connection to the endpoint.
//
// Lifecycle: open -> connecting (-> hybrid handshake) -> up -> (finish) -> maybe down (reported
// once) -> close -> finished. Messages that are sent before the `up` state are queued behind the
// metadata line. While a lane is held, it does not read, so the endpoint's send buffer fills up. A
// connection that is lost in the meantime is reported when the lane is no longer held.
//
// Owned by the connector. Runs on the reactor thread. The host functions message() and lane_down()
// may call close() or send() on the same lane before they return. After close(), the lane is
// destroyed at the end of the event loop iteration.
#pragma once

#include <bulkhead/abi/ext/draft/wire.h>
#include <bulkhead/cpp/host.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "connector-vsock/definition.hpp"
#include "mcp-frame/frame_reader.hpp"
#include "stdio-lines/bytes.hpp"

namespace connector_vsock {

class Lane;

// State shared by all lanes of a plugin instance.
class Shared {
 public:
  static constexpr std::size_t scratch_size = 64u << 10;

  Shared(const bh::Host &h, const bh_host_connector *u, const bh_host_wire *w)
      : host(h), up(u), wire(w) {}
  Shared(const Shared &) = delete;
  Shared &operator=(const Shared &) = delete;

  // Calls lane.flush() at the end of the current event loop iteration.
  virtual void flush_later(Lane &lane) = 0;
  // Called once, as the lane's last callback. The owner then destroys the lane and reports
  // lane_closed at the end of the event loop iteration.
  virtual void finished(Lane &lane) = 0;

  const bh::Host &host;
  const bh_host_connector *const up;
  const bh_host_wire *const wire;  // null if the host does not support bh.host.wire/1
  const std::unique_ptr<char[]> scratch{new char[scratch_size]};  // used by one lane at a time

 protected:
  ~Shared() = default;
};

class Lane final {
 public:
  // Approximate limit on the number of bytes read in one event loop iteration.
  static constexpr std::size_t read_budget = 1u << 20;

  Lane(Shared &shared, bh_lane handle, Definition definition);
  ~Lane();
  Lane(const Lane &) = delete;
  Lane &operator=(const Lane &) = delete;

  bh_status open(std::uint64_t connect_timeout_ms, bh_error *error);
  // Queues a message. On failure, nothing is queued. Returns BH_E_INVALID if the message does not
  // fit into a frame or memory allocation fails, BH_E_LIMIT if the queue is full, and
  // BH_E_SESSION_LOST if the stream numbers of this connection are exhausted. Returns
  // BH_E_UNAVAILABLE if the connection is down or broken, or if finish() or close() was called.
  bh_status send(const bh_lane_message &message, bh_error *error);
  void abandon(std::uint64_t exchange) noexcept;
  void flush();
  void finish();
  void hold(bool hold);
  void close();

  bh_lane handle() const noexcept { return handle_; }
  bool closing() const noexcept { return closing_; }

  // For tests. Sets the stream number of the next request.
  void skip_to_stream(std::uint32_t stream) noexcept { next_stream_ = stream; }

  bool flush_queued = false;  // used only by the owner

 private:
  enum class State : std::uint8_t { connecting, dialogue, up, down };
  void introduce();
  bool queue_frame(std::uint32_t stream, bool notification, const bh_str *parts,
                   std::uint32_t part_count, std::size_t payload, bh_error *error);
  void on_event();
  void on_connect_timeout();
  void on_connected();
  void on_dialogue(std::string_view in);
  void now_up();
  void on_readable();
  void on_bytes(std::string_view in);
  void on_frame(const mcp_frame::Frame &frame);
  void bad_frame(std::uint32_t stream);
  void write_queue();
  void write_failed(const std::string &why);
  void set_blocked(bool blocked);
  bool reads() const noexcept {
    return state_ == State::dialogue || (state_ == State::up && !held_);
  }
  void update_watch();
  void report_down(bh_status code, const std::string &text);
  void release();

  Shared &shared_;
  const bh_lane handle_;
  const Definition definition_;
  State state_ = State::connecting;
  int fd_ = -1;
  bh_watch watch_ = 0;
  bh_timer timer_ = 0;
  std::string answer_;  // partial response of the hybrid handshake
  mcp_frame::FrameReader reader_;
  stdio_lines::Bytes queue_;
  std::size_t written_ = 0;                                     // bytes of queue_ already written
  std::uint32_t next_stream_ = 1;                               // 0 if exhausted
  std::unordered_map<std::uint32_t, std::uint64_t> exchanges_;  // by stream
  std::string broken_;  // a write error, which is reported after the received messages
  bool finishing_ = false, half_closed_ = false, closing_ = false, blocked_ = false, held_ = false;
  bool bad_frame_logged_ = false;
};

}  // namespace connector_vsock
