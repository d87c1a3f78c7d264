// Handles one connection from a guest: detects the protocol, opens the session, and limits input
// and output.
//
// The first bytes determine the protocol. The first message opens a session with the host, and all
// later messages on the connection belong to this session. If the protocol is not MCP, the owner
// hands off the connection, or it is closed if `handoff` is empty. Runs on the reactor thread.
#pragma once

#include <bulkhead/abi/ext/transport.h>
#include <bulkhead/cpp/host.hpp>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "mcp-frame/frame_reader.hpp"
#include "stdio-lines/line_reader.hpp"
#include "stdio-lines/line_writer.hpp"
#include "transport-vsock/config.hpp"
#include "transport-vsock/counters.hpp"
#include "transport-vsock/log_limiter.hpp"
#include "transport-vsock/sniff.hpp"

namespace transport_vsock {

// The class is final, but the check reads only this declaration.
class Connection;  // NOLINT(cppcoreguidelines-virtual-class-destructor)

inline constexpr std::size_t max_unsent = 256u << 20;  // queued output of all connections together

// State that all connections share, and callbacks to the owner.
class ConnectionOwner {
 public:
  ConnectionOwner(const bh::Host &plugin_host, const bh_host_transport *up, const Config &settings)
      : host(plugin_host), transport(up), config(settings), counters(plugin_host) {}

  const bh::Host &host;
  const bh_host_transport *const transport;
  const Config &config;
  const Counters counters;
  stdio_lines::Scratch scratch;    // received bytes are processed before the event handler returns
  std::size_t unsent = 0;          // queued output of all connections, in bytes
  LogLimiter stalled, no_session;  // limit log lines about stalled connections and failed sessions

  // Called when the connection has opened a session.
  virtual void on_session(Connection &connection, bh_session session) = 0;
  // Called if the connection is not MCP and `handoff` is configured. The owner must take over the
  // descriptor and the received bytes.
  virtual void on_other(Connection &connection, std::string_view bytes) = 0;
  // Requests that flush() be called at the end of this event loop iteration.
  virtual void on_unflushed(Connection &connection) = 0;
  // Requests that the connection be destroyed, either in on_event_end() or at the end of this event
  // loop iteration.
  virtual void on_doomed(Connection &connection) noexcept = 0;
  // Called if `unsent` exceeds max_unsent.
  virtual void on_too_much_unsent() = 0;
  // Called at the end of a reactor event. The owner may destroy connections here.
  virtual void on_event_end() = 0;
  // Called if a time-out is pending. The owner must then call check() for all connections
  // periodically.
  virtual void want_checks() noexcept = 0;

 protected:
  ~ConnectionOwner() = default;
};

class Connection final : private stdio_lines::LineSink {
 public:
  static constexpr std::size_t max_line = 1u << 20;     // limit in bytes for the line protocol
  static constexpr std::size_t max_names = 256;         // limit for processes on one connection
  static constexpr std::size_t pause_bytes = 1u << 20;  // queued output that pauses reading
  // The connection is closed if its queued output exceeds this limit or limits.write_queue_bytes.
  // With a local_token, only limits.write_queue_bytes applies.
  static constexpr std::size_t max_waiting = 8u << 20;
  // Reading pauses if the total size of waiting requests reaches this limit.
  static constexpr std::size_t max_parked = 1u << 20;  // bytes

  // Takes ownership of the descriptor. `peer` is the name of the peer, such as "cid:3".
  Connection(ConnectionOwner &owner, int fd, std::string peer);
  ~Connection();
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;

  bool start();                           // returns false if the host cannot watch the descriptor
  void received(std::string_view bytes);  // processes bytes that were read earlier

  bh_status send(const bh_outgoing &message);
  void session_ended() noexcept;
  void flush();
  // Enforces time-outs. Returns true if another time-out is pending.
  bool check(std::uint64_t now_ns);

  // Stops watching the descriptor and passes ownership of it to the caller. The connection is then
  // doomed.
  int release() noexcept;
  bh_session session() const noexcept { return session_; }
  bool doomed() const noexcept { return doomed_; }
  std::size_t unsent() const noexcept { return counted_; }
  void too_slow() noexcept { doom(owner_.counters.too_slow); }

  std::size_t index = 0;      // used only by the owner
  bool unflushed = false;     // used only by the owner
  bool from_dialer = false;   // used only by the owner
  std::uint32_t peer_id = 0;  // used only by the owner

 private:
  enum class Mode : std::uint8_t { sniffing, frames, lines };
  struct Parked {
    std::uint64_t stream;
    std::string message;
    bool awaited;
  };
  struct Name {
    std::string raw, clean;  // as received, and sanitized for logs and policies
  };

  void on_event(std::uint32_t events) noexcept;
  void on_readable();
  void input_ended();
  void report_input_ended();
  void doom(bh_metric why) noexcept;
  void update_events();
  void after_flush(stdio_lines::Flush result);
  template <class Add>
  bool queue(Add add);
  void count_unsent() noexcept;

  void sniff_all(std::string_view all);
  bool is_local(std::string_view all, const Sniffed &sniffed) const;
  void consume(std::string_view in);
  void consume_frames(std::string_view in);
  void consume_lines(std::string_view in);
  bool pauses(std::string_view rest);
  void resume();
  void on_frame(const mcp_frame::Frame &frame);
  void on_bad_frame(std::uint32_t stream, mcp_frame::Fault fault);
  bool on_line(std::string_view line) override;
  bool on_too_long(std::string_view start) override;
  bool handle_unanswered(std::string_view message);

  bool name_process(std::string_view name);
  void use_name(std::size_t known);
  bool open_session();
  void deliver_in_turn(std::uint64_t stream, std::string_view message, bool awaited);
  void deliver_parked();
  void park(std::uint64_t stream, std::string_view message, bool awaited);
  bool full() const noexcept;
  bool waits() const noexcept;  // whether the next request must be queued
  void deliver(std::uint64_t stream, std::string_view message, bool awaited);
  bool send_frame(std::uint32_t stream, std::string_view name, std::span<const bh_str> parts);
  bh_status send_as_frame(const bh_outgoing &message);
  bh_status send_too_large(std::uint32_t stream, std::string_view name,
                           std::span<const bh_str> parts);

  ConnectionOwner &owner_;
  int fd_;
  const std::string peer_;
  bh_watch watch_ = 0;
  std::uint32_t events_ = BH_FD_READ;
  Mode mode_ = Mode::sniffing;
  bool doomed_ = false, input_ended_ = false, blocked_ = false;
  bool in_event_ = false;    // flush() is called at the end of the event
  bool introduced_ = false;  // only a metadata line was received, so the connection may stay idle
  bool duplex_ = false;      // the guest accepts server-initiated messages
  bh_session session_ = 0;
  std::uint32_t last_stream_ = 0;
  std::uint32_t open_ = 0;  // requests with a pending response
  std::deque<Parked> parked_;
  std::size_t parked_bytes_ = 0;
  std::vector<Name> names_;
  std::size_t name_ = 0;  // index in names_ of the sender of the current message
  // During protocol detection, the time at which the connection was opened or the first byte after
  // the metadata line was received. While output is blocked, the time at which some output was last
  // written.
  std::uint64_t since_ns_;
  std::size_t waiting_before_ = 0;
  std::string undecided_;        // bytes received during protocol detection
  bool paused_ = false;          // reading is paused until output is written
  std::string held_;             // input that is processed after the pause
  std::size_t counted_ = 0;      // this connection's share of the owner's `unsent`
  const std::size_t max_total_;  // maximum total length of a frame
  mcp_frame::FrameReader frames_;
  stdio_lines::LineReader lines_;
  const std::size_t bound_, pause_at_;  // limits for queued output
  stdio_lines::LineWriter writer_;
};

}  // namespace transport_vsock
